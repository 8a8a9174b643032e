import { ConnectionLost, type Connection, type DaemonState } from '../daemon/connection';
import type { CompleteParams, LogParams, Methods, ProgressParams, RunStarted } from '../daemon/protocol';
import { Emitter, type Disposable, type Event } from '../daemon/emitter';
import { RunModel } from './run';

/** A change of a run; the model already contains it. */
export type RunEvent =
  | { kind: 'started'; run: RunModel }
  | { kind: 'progress'; run: RunModel; params: ProgressParams }
  | { kind: 'log'; run: RunModel; params: LogParams }
  | { kind: 'complete'; run: RunModel; params: CompleteParams }
  /** The run cannot be followed any more in this window, because its daemon is gone for good. */
  | { kind: 'lost'; run: RunModel; error: string };

export interface TrackerOptions {
  /** Decides whether an interrupted run of this window resumes; if absent, it does. */
  mayResume?: (run: RunModel) => Promise<boolean>;
  /** Called with errors for which no caller waits. */
  onError?: (run: RunModel, error: unknown) => void;
}

/** Maximum number of runs that are kept after their end. */
const maxRemembered = 50;

/**
 * The runs that this window follows. It starts them and applies the daemon's notifications to their
 * models. When the daemon returns after its death, it requests the missed events, so that listeners
 * see each event once.
 */
export class RunTracker implements Disposable {
  private readonly byId = new Map<string, RunModel>();
  /** Runs that this connection receives and that have not ended: those to request from the next daemon. */
  private readonly followed = new Set<string>();
  private readonly events: Emitter<RunEvent>;
  private readonly subscriptions: Disposable[];
  private connected: boolean;
  readonly onEvent: Event<RunEvent>;

  constructor(private readonly connection: Connection, private readonly options: TrackerOptions = {}) {
    this.events = new Emitter();
    this.onEvent = this.events.event;
    this.connected = connection.state === 'running';
    this.subscriptions = [
      connection.onNotification('eval.progress', (p) => { this.progress(p); }),
      connection.onNotification('eval.log', (p) => { this.log(p); }),
      connection.onNotification('eval.complete', (p) => { this.complete(p); }),
      connection.onDidChangeState((state) => { this.stateChanged(state); }),
    ];
  }

  /** The runs, the newest last; only some of those that are over. */
  get runs(): readonly RunModel[] {
    return [...this.byId.values()];
  }

  get running(): readonly RunModel[] {
    return this.runs.filter((run) => !run.over);
  }

  get(runId: string): RunModel | undefined {
    return this.byId.get(runId);
  }

  /** Starts a run of a suite. The run's model has the origin. */
  async runSuite(params: Methods['eval.run']['params'], origin?: unknown): Promise<RunStarted> {
    return this.register(await this.connection.request('eval.run', params), params.path, origin);
  }

  /** Starts a run of tasks, or of one trial of them. */
  async runTasks(params: Methods['task.run']['params'], origin?: unknown): Promise<RunStarted> {
    return this.register(await this.connection.request('task.run', params), params.path, origin);
  }

  /** Adds a run of which only a notification reported the start, like eval.changed. */
  expect(runId: string, path: string, origin?: unknown): RunModel {
    const run = this.adopt(runId, path, origin);
    this.followed.add(runId);
    this.events.fire({ kind: 'started', run });
    return run;
  }

  /**
   * Follows a run that another client started, or a past one: from the given event, or else from
   * the first unknown one.
   */
  async follow(runId: string, path?: string, fromSeq?: number): Promise<RunModel> {
    const known = this.byId.get(runId);
    await this.connection.request('run.subscribe', { runId, fromSeq: fromSeq ?? (known?.seq ?? 0) + 1 });
    const run = this.adopt(runId, path);
    if (!run.over) {
      this.followed.add(runId);
    }
    return run;
  }

  /** Resumes a run that is over. */
  async resume(runId: string, path?: string): Promise<RunStarted> {
    return this.register(await this.connection.request('run.resume', { runId }), path);
  }

  async cancel(runId: string): Promise<void> {
    await this.connection.request('run.cancel', { runId });
  }

  dispose(): void {
    for (const s of this.subscriptions) {
      s.dispose();
    }
    this.events.dispose();
  }

  private register(started: RunStarted, path: string | undefined, origin?: unknown): RunStarted {
    const run = this.adopt(started.runId, path, origin);
    run.status = 'running';
    this.followed.add(run.runId);
    this.events.fire({ kind: 'started', run });
    return started;
  }

  private adopt(runId: string, path?: string, origin?: unknown): RunModel {
    let run = this.byId.get(runId);
    if (!run) {
      run = new RunModel(runId, path, origin);
      this.byId.set(runId, run);
      this.forgetOld();
    }
    run.path ??= path;
    return run;
  }

  /** Returns the run of a notification; an unknown one was started by a request of this window. */
  private heard(runId: string): RunModel {
    const known = this.byId.get(runId);
    if (!known) {
      this.followed.add(runId);
    }
    return known ?? this.adopt(runId);
  }

  private forgetOld(): void {
    const over = [...this.byId.values()].filter((run) => run.over);
    for (const run of over.slice(0, Math.max(0, over.length - maxRemembered))) {
      this.byId.delete(run.runId);
      this.followed.delete(run.runId);
    }
  }

  private progress(params: ProgressParams): void {
    const run = this.heard(params.runId);
    if (run.progress(params)) {
      this.events.fire({ kind: 'progress', run, params });
    }
  }

  private log(params: LogParams): void {
    const run = this.heard(params.runId);
    if (run.log(params)) {
      this.events.fire({ kind: 'log', run, params });
    }
  }

  private complete(params: CompleteParams): void {
    const run = this.heard(params.runId);
    if (!run.complete(params)) {
      return;
    }
    if (params.status === 'interrupted' && this.followed.has(run.runId)) {
      void this.interrupted(run, params);
    } else {
      this.ended(run, params);
    }
  }

  private ended(run: RunModel, params: CompleteParams): void {
    this.followed.delete(run.runId);
    this.events.fire({ kind: 'complete', run, params });
  }

  /** The daemon that executed the run is gone: the run continues in the new daemon, if the user agrees. */
  private async interrupted(run: RunModel, params: CompleteParams): Promise<void> {
    try {
      if (await (this.options.mayResume?.(run) ?? true)) {
        await this.connection.request('run.resume', { runId: run.runId });
        return;
      }
    } catch (error) {
      if (error instanceof ConnectionLost) {
        return; // the next daemon reports the interruption again
      }
      this.options.onError?.(run, error);
    }
    this.ended(run, params);
  }

  private stateChanged(state: DaemonState): void {
    const back = state === 'running' && !this.connected;
    this.connected = state === 'running';
    const open = [...this.followed].map((id) => this.byId.get(id)).filter((run) => run !== undefined);
    if (back) {
      for (const run of open) {
        void this.catchUp(run);
      }
    } else if (state === 'failed' || state === 'missing' || state === 'idle') {
      for (const run of open) {
        this.lose(run, 'waza does not run any more, so the state of the run is unknown.');
      }
    }
  }

  /** Requests from the new daemon the events that the previous one could not send any more. */
  private async catchUp(run: RunModel): Promise<void> {
    try {
      await this.connection.request('run.subscribe', { runId: run.runId, fromSeq: run.seq + 1 });
    } catch (error) {
      if (error instanceof ConnectionLost) {
        return; // the next daemon is asked
      }
      this.options.onError?.(run, error);
      this.lose(run, 'waza has no record of the run any more.');
    }
  }

  private lose(run: RunModel, error: string): void {
    run.status = 'interrupted';
    run.error = error;
    this.followed.delete(run.runId);
    this.events.fire({ kind: 'lost', run, error });
  }
}
