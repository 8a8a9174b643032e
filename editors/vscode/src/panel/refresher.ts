import type { Disposable } from '../model/emitter';

export interface RefresherOptions {
  /** Least time from the end of one refresh to the beginning of the next; 1000 when absent. */
  everyMs?: number;
  /** How many times as long as a refresh took the pause after it is at least; 10 when absent. */
  idle?: number;
  now?: () => number;
  onError?: (error: unknown) => void;
}

/**
 * Does something again and again while there is need, one at a time and never
 * for more than a small share of the time: what is dear is done seldom.
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

  /** There is something new. It will be seen after a while. */
  need(): void {
    this.wanted = true;
    this.plan();
  }

  /** There is something new that somebody waits for. */
  needNow(): void {
    this.nextAt = 0;
    this.need();
  }

  /** Nothing is needed any more. */
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
    const began = this.now();
    this.nextAt = Infinity;
    try {
      await this.refresh();
    } catch (error) {
      this.options.onError?.(error);
    }
    this.working = false;
    const took = this.now() - began;
    // needNow may have been called meanwhile, which keeps its right.
    this.nextAt = this.nextAt === 0 ? 0 : began + took + Math.max(this.everyMs, this.idle * took);
    this.plan();
  }
}
