/** The reaction to the daemon's death. */
export type Verdict = { action: 'restart'; afterMs: number } | { action: 'give up' };

export interface BackoffOptions {
  firstMs: number;
  maxMs: number;
  /** A daemon that lived this long was healthy: the count starts again. */
  healthyMs: number;
  /** Number of deaths in a row, none after a healthy life, after which the client gives up. */
  maxDeaths: number;
}

export const defaults: BackoffOptions = { firstMs: 500, maxMs: 30_000, healthyMs: 60_000, maxDeaths: 8 };

/** Decides when a daemon that died restarts: after 0.5 s, 1 s, 2 s … 30 s. */
export class Backoff {
  private deaths = 0;

  constructor(private readonly options: BackoffOptions = defaults) {}

  /** Records the death of a daemon that lived for livedMs. */
  died(livedMs: number): Verdict {
    if (livedMs >= this.options.healthyMs) {
      this.deaths = 0;
    }
    this.deaths++;
    if (this.deaths >= this.options.maxDeaths) {
      return { action: 'give up' };
    }
    const { firstMs, maxMs } = this.options;
    return { action: 'restart', afterMs: Math.min(maxMs, firstMs * 2 ** (this.deaths - 1)) };
  }

  /** The user asked for a start: earlier deaths no longer count. */
  reset(): void {
    this.deaths = 0;
  }
}
