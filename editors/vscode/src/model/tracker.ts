import { ConnectionLost, type Connection, type DaemonState } from '../daemon/connection';
import type { CompleteParams, LogParams, Methods, ProgressParams, RunStarted } from '../daemon/protocol';
import { Emitter, type Disposable, type Event } from './emitter';
import { RunModel } from './run';

/** Something that was learnt of a run; what it changed in the model is done already. */
export type RunEvent =
  | { kind: 'begun'; run: RunModel }
  | { kind: 'progress'; run: RunModel; params: ProgressParams }
  | { kind: 'log'; run: RunModel; params: LogParams }
  | { kind: 'complete'; run: RunModel; params: CompleteParams }
  /** Nothing more will be heard of the run in this window: its daemon is gone for good. */
  | { kind: 'lost'; run: RunModel; error: string };

export interface TrackerOptions {
  /** Asked when a run of this window turns out to be interrupted; absent: such runs are taken up again. */
  mayResume?: (run: RunModel) => Promise<boolean>;
  /** Told of what went wrong while no caller was waiting. */
  onError?: (run: RunModel, error: unknown) => void;
}

/** Most runs that are over and remembered. */
const maxRemembered = 50;

/**
 * The runs that this window follows. It starts them, folds what the daemon
 * tells into their models and, when the daemon comes back after it died, asks
 * for what was missed, so that who listens sees each event once.
 */
export class RunTracker implements Disposable {
  private readonly byId = new Map<string, RunModel>();
  /** Runs that this connection is told of and whose end was not heard: those to ask for when the daemon is another. */
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

  /** The runs, the newest last; those that are over only as far as they are remembered. */
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
    return this.began(await this.connection.request('eval.run', params), params.path, origin);
  }

  /** Starts a run of tasks, or of one trial of them. */
  async runTasks(params: Methods['task.run']['params'], origin?: unknown): Promise<RunStarted> {
    return this.began(await this.connection.request('task.run', params), params.path, origin);
  }

  /** Takes on a run of which only a notification told that it begins, as eval.changed does. */
  expect(runId: string, path: string, origin?: unknown): RunModel {
    const run = this.adopt(runId, path, origin);
    this.followed.add(runId);
    this.events.fire({ kind: 'begun', run });
    return run;
  }

  /** Follows a run that someone else started, or one of the past: from that event on, else from the first that is not known of it. */
  async follow(runId: string, path?: string, fromSeq?: number): Promise<RunModel> {
    const known = this.byId.get(runId);
    await this.connection.request('run.subscribe', { runId, fromSeq: fromSeq ?? (known?.seq ?? 0) + 1 });
    const run = this.adopt(runId, path);
    if (!run.over) {
      this.followed.add(runId);
    }
    return run;
  }

  /** Takes a run up again that is over. */
  async resume(runId: string, path?: string): Promise<RunStarted> {
    return this.began(await this.connection.request('run.resume', { runId }), path);
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

  private began(started: RunStarted, path: string | undefined, origin?: unknown): RunStarted {
    const run = this.adopt(started.runId, path, origin);
    run.status = 'running';
    this.followed.add(run.runId);
    this.events.fire({ kind: 'begun', run });
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

  /** The run that a notification is about; one that is not known was started by what this window asked for all the same. */
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

  /** The daemon that carried the run out is gone: its run goes on in this one, if the user wants so. */
  private async interrupted(run: RunModel, params: CompleteParams): Promise<void> {
    try {
      if (await (this.options.mayResume?.(run) ?? true)) {
        await this.connection.request('run.resume', { runId: run.runId });
        return;
      }
    } catch (error) {
      if (error instanceof ConnectionLost) {
        return; // the next daemon tells again that it is interrupted
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
        this.lose(run, 'waza is not running any more, so nothing is known of how the run goes on.');
      }
    }
  }

  /** Asks the new daemon for what the one that died could not tell any more. */
  private async catchUp(run: RunModel): Promise<void> {
    try {
      await this.connection.request('run.subscribe', { runId: run.runId, fromSeq: run.seq + 1 });
    } catch (error) {
      if (error instanceof ConnectionLost) {
        return; // the next daemon is asked
      }
      this.options.onError?.(run, error);
      this.lose(run, 'waza does not know the run any more.');
    }
  }

  private lose(run: RunModel, error: string): void {
    run.status = 'interrupted';
    run.error = error;
    this.followed.delete(run.runId);
    this.events.fire({ kind: 'lost', run, error });
  }
}
