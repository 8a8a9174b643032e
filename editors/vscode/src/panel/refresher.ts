import type { Disposable } from '../daemon/emitter';

export interface RefresherOptions {
  /** Minimum time from the end of one refresh to the start of the next; 1000 when absent. */
  everyMs?: number;
  /** Minimum ratio of the pause after a refresh to its duration; 10 when absent. */
  idle?: number;
  now?: () => number;
  onError?: (error: unknown) => void;
}

/**
 * Repeats a task while it is needed, one at a time and only for a small share of the time: the
 * slower the task, the rarer.
 */
export class Refresher implements Disposable {
  private wanted = false;
  private working = false;
  private nextAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private disposed = false;
  private readonly everyMs: number;
  private readonly idle: number;
  private readonly now: () => number;

  constructor(private readonly refresh: () => Promise<void>, private readonly options: RefresherOptions = {}) {
    this.everyMs = options.everyMs ?? 1000;
    this.idle = options.idle ?? 10;
    this.now = options.now ?? Date.now;
  }

  /** There are changes. They will be shown after a pause. */
  need(): void {
    this.wanted = true;
    this.plan();
  }

  /** There are changes that the user waits for. */
  needNow(): void {
    this.nextAt = 0;
    this.need();
  }

  /** No more refreshes are needed. */
  rest(): void {
    this.wanted = false;
    this.nextAt = 0;
    clearTimeout(this.timer);
  }

  dispose(): void {
    this.disposed = true;
    this.rest();
  }

  private plan(): void {
    clearTimeout(this.timer);
    if (!this.wanted || this.working || this.disposed) {
      return;
    }
    this.timer = setTimeout(() => { void this.work(); }, Math.max(0, this.nextAt - this.now()));
  }

  private async work(): Promise<void> {
    this.wanted = false;
    this.working = true;
    const startedAt = this.now();
    this.nextAt = Infinity;
    try {
      await this.refresh();
    } catch (error) {
      this.options.onError?.(error);
    }
    this.working = false;
    const took = this.now() - startedAt;
    // needNow may have been called meanwhile and takes precedence.
    this.nextAt = this.nextAt === 0 ? 0 : startedAt + took + Math.max(this.everyMs, this.idle * took);
    this.plan();
  }
}
