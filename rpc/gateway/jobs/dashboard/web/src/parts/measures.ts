import { call, onSession } from '../net/rpc';
import type { Run } from '../net/runs';
import { Store } from '../net/store';

/** The charted values of a run; null when unknown. */
export interface Point {
  runId: string;
  startedAt: string;
  rate: number | null;
  low: number | null;
  high: number | null;
  latency: number | null; // median of counted trials, in milliseconds
  slow: number | null; // 95th percentile
  speed: number | null; // output tokens per second of all trials
  cost: number | null; // US dollars
}

interface Page {
  run: {
    status: string;
    startedAt: string;
    summary?: {
      trials: { passRate: number | null; passRateInterval: { low: number; high: number } | null };
      usage?: { costUsd?: number };
    };
    trialMs?: { median: number; p95: number };
    tokensWrittenPerSecond: number | null;
  };
}

const MOST_RUNS = 50;
const MOST_TRIALS = 20_000;

function pointOf(runId: string, { run }: Page): Point {
  const s = run.summary;
  return {
    runId,
    startedAt: run.startedAt,
    rate: s?.trials.passRate ?? null,
    low: s?.trials.passRateInterval?.low ?? null,
    high: s?.trials.passRateInterval?.high ?? null,
    latency: run.trialMs?.median ?? null,
    slow: run.trialMs?.p95 ?? null,
    speed: run.tokensWrittenPerSecond,
    cost: s?.usage?.costUsd || null,
  };
}

/** Loads the charted values, one run at a time, and caches them. */
class Measures {
  private known = new Map<string, Point | null>(); // null: not available
  private queue: Run[] = [];
  private busy = false;

  constructor(private readonly changed: () => void) {}

  private static charted = (list: Run[]): Run[] => list.filter((r) => r.status === 'completed').slice(0, MOST_RUNS);

  want(list: Run[]): void {
    this.queue = Measures.charted(list).filter((r) => !this.known.has(r.runId));
    void this.read();
  }

  /** Returns the points of runs, oldest first. */
  of(list: Run[]): Point[] {
    return Measures.charted(list).map((r) => this.known.get(r.runId)).filter((p) => p != null).reverse();
  }

  /** Returns how many runs are not loaded yet. */
  waiting(list: Run[]): number {
    return Measures.charted(list).filter((r) => !this.known.has(r.runId)).length;
  }

  async read(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      for (let r = this.queue.shift(); r; r = this.queue.shift()) {
        if (r.trials.total > MOST_TRIALS) this.known.set(r.runId, null);
        else this.known.set(r.runId, await this.one(r.runId));
        this.changed();
      }
    } catch {
      // the next session loads the rest
    } finally {
      this.busy = false;
    }
  }

  private async one(runId: string): Promise<Point | null> {
    try {
      return pointOf(runId, (await call<{ data: Page }>('run.page', { runId })).data);
    } catch (e) {
      if ((e as { code?: number }).code === 0) throw e;
      return null;
    }
  }
}

export const measures: Store<Measures> = new Store(new Measures(() => measures.touch()));

onSession(() => void measures.value.read());
