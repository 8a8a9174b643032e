/** What to do after the daemon died. */
export type Verdict = { action: 'restart'; afterMs: number } | { action: 'give up' };

export interface BackoffOptions {
  firstMs: number;
  maxMs: number;
  /** A daemon that lived this long was healthy: counting begins anew. */
  healthyMs: number;
  /** Deaths in a row, none of them after a healthy life, after which it is given up. */
  maxDeaths: number;
}

export const defaults: BackoffOptions = { firstMs: 500, maxMs: 30_000, healthyMs: 60_000, maxDeaths: 8 };

/** Decides when a daemon that dies is started again: after 0.5 s, 1 s, 2 s … 30 s. */
export class Backoff {
  private deaths = 0;

  constructor(private readonly options: BackoffOptions = defaults) {}

  /** A daemon died that had lived for livedMs. */
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

  /** The user asked for a start: what was before counts no more. */
  reset(): void {
    this.deaths = 0;
  }
}
