import { call, on, onSession } from '../net/rpc';
import type { Counts } from '../net/runs';
import { Store } from '../net/store';
import { Model, type Deciding, type Event, type PageData } from './model';

export interface Followed {
  model: Model;
  data: PageData | null;
  /** The server's counts of the verdicts; null before they are known. */
  counts: Counts | null;
  /** The run decides a question, so that it needs only some of its trials. */
  asks: boolean;
  /** The reason why the run cannot be shown; empty when it can. */
  problem: string;
}

/** The reply of run.status. */
interface RunStatus {
  trials: Counts;
  seq?: number;
  question?: object;
  deciding?: Deciding;
}

const PATIENCE_MS = 3000;
const COUNT_MS = 200;

const nothing = (problem = ''): Followed => ({ model: new Model(), data: null, counts: null, asks: false, problem });

/**
 * Follows a run. Each connection starts with the recorded state of the run and then replays
 * its events from the first, into a model that is not shown until it has caught up. So trials
 * are in the right places after a restart of the server and lost events. The server counts the
 * verdicts.
 */
export class Follower {
  readonly store = new Store<Followed>(nothing());
  private hidden: Model | null = null;
  /** The event at which the hidden model has caught up; 0 for a run that is over. */
  private last = 0;
  private stops: (() => void)[] = [];
  private attempt = 0;
  private timer = 0;
  private checking = false;
  private counting = false;
  private uncounted = false;

  constructor(private readonly runId: string) {
    this.stops.push(
      on<Event>('eval.progress', (e) => this.take(e, (m) => m.apply(e))),
      on<Event>('eval.log', (e) => this.take(e, (m) => m.note(e))),
      on<Event & { error?: string }>('eval.complete', (e) => {
        this.take(e, (m) => m.complete(e.status ?? '', e.error ?? '', e.seq, e.summary?.decision?.text ?? ''));
        if (e.runId === this.runId) this.show();
      }),
      onSession(() => void this.start()),
    );
    void this.start();
  }

  close(): void {
    this.attempt++;
    clearTimeout(this.timer);
    for (const f of this.stops) f();
    call('run.unsubscribe', { runId: this.runId }).catch(() => undefined); // fails when the connection is broken
  }

  /** Replays the run from its first event, for example after it was resumed. */
  async start(): Promise<void> {
    const attempt = ++this.attempt;
    this.hidden = null;
    let data: PageData | null = null;
    try {
      data = (await call<{ data: PageData }>('run.page', { runId: this.runId })).data;
    } catch (e) {
      if ((e as { code?: number }).code === 0) return; // the next session starts again
    }
    let status: RunStatus;
    try {
      status = await call<RunStatus>('run.status', { runId: this.runId });
    } catch (e) {
      if (attempt === this.attempt && (e as { code?: number }).code !== 0) this.store.set(nothing((e as Error).message));
      return;
    }
    if (attempt !== this.attempt) return;
    this.last = status.seq ?? 0;
    const model = new Model();
    if (data) model.start(data);
    const recorded = data && Model.of(data);
    if (recorded) recorded.deciding = status.deciding ?? null;
    this.store.set({ ...this.store.value, ...(recorded && { model: recorded, data, problem: '' }), counts: status.trials, asks: status.question !== undefined });
    try {
      await call('run.unsubscribe', { runId: this.runId }); // starting a run subscribes the client
      if (attempt !== this.attempt) return;
      this.hidden = model;
      await call('run.subscribe', { runId: this.runId, fromSeq: 1 });
    } catch {
      return;
    }
    if (attempt !== this.attempt) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.show(), PATIENCE_MS);
  }

  private take(e: Event, apply: (m: Model) => void): void {
    if (e.runId !== this.runId) return;
    void this.count();
    const shown = this.store.value.model;
    if (!this.hidden) {
      if (shown.seq === 0) return; // from an earlier subscription
      apply(shown);
      this.store.touch();
      if (shown.doubtful) void this.check(shown);
      return;
    }
    apply(this.hidden);
    if (this.last > 0 && this.hidden.seq >= this.last) this.show();
  }

  private show(): void {
    clearTimeout(this.timer);
    if (!this.hidden) return;
    const model = this.hidden;
    this.hidden = null;
    this.store.set({ ...this.store.value, model });
    if (model.doubtful) void this.check(model);
  }

  /** Asks the server for the counts: at once, and again if events have arrived since. */
  private async count(): Promise<void> {
    this.uncounted = true;
    if (this.counting) return;
    this.counting = true;
    while (this.uncounted) {
      this.uncounted = false;
      const asked = Date.now();
      try {
        const { trials } = await call<RunStatus>('run.status', { runId: this.runId });
        this.store.set({ ...this.store.value, counts: trials });
      } catch {
        break; // the next session starts again
      }
      const pause = COUNT_MS + 2 * (Date.now() - asked); // a server that needs long is asked less often
      await new Promise((later) => setTimeout(later, pause));
    }
    this.counting = false;
  }

  /** Checks which trials a resumed run has kept. */
  private async check(model: Model): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    try {
      const before = model.snapshot();
      const { data } = await call<{ data: PageData }>('run.page', { runId: this.runId });
      model.reconcile(before, Model.of(data));
      this.store.touch();
    } catch {
      // the next session starts again
    } finally {
      this.checking = false;
    }
  }
}
