import type { Connection } from '../daemon/connection';
import type { CompleteParams, LogParams, Methods, ProgressParams, RunStarted } from '../daemon/protocol';
import { Emitter, type Disposable, type Event } from './emitter';
import { RunModel } from './run';

/** Something that was learnt of a run; what it changed in the model is done already. */
export type RunEvent =
  | { kind: 'begun'; run: RunModel }
  | { kind: 'progress'; run: RunModel; params: ProgressParams }
  | { kind: 'log'; run: RunModel; params: LogParams }
  | { kind: 'complete'; run: RunModel; params: CompleteParams };

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
  /** Runs whose end is of interest to this window: started, resumed or subscribed to here. */
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
      connection.onDidChangeState((state) => { this.stateChanged(state === 'running'); }),
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

  async runSuite(params: Methods['eval.run']['params']): Promise<RunStarted> {
    return this.began(await this.connection.request('eval.run', params), params.path);
  }

  async runTasks(params: Methods['task.run']['params']): Promise<RunStarted> {
    return this.began(await this.connection.request('task.run', params), params.path);
  }

  /** Follows a run that someone else started, or one of the past, from the first event that is not known of it. */
  async follow(runId: string, path?: string): Promise<RunModel> {
    const run = this.adopt(runId, path);
    this.followed.add(runId);
    await this.connection.request('run.subscribe', { runId, fromSeq: run.seq + 1 });
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

  private began(started: RunStarted, path: string | undefined): RunStarted {
    const run = this.adopt(started.runId, path);
    run.status = 'running';
    this.followed.add(run.runId);
    this.events.fire({ kind: 'begun', run });
    return started;
  }

  private adopt(runId: string, path?: string): RunModel {
    let run = this.byId.get(runId);
    if (!run) {
      run = new RunModel(runId, path);
      this.byId.set(runId, run);
      this.forgetOld();
    }
    run.path ??= path;
    return run;
  }

  private forgetOld(): void {
    const over = [...this.byId.values()].filter((run) => run.over);
    for (const run of over.slice(0, Math.max(0, over.length - maxRemembered))) {
      this.byId.delete(run.runId);
      this.followed.delete(run.runId);
    }
  }

  private progress(params: ProgressParams): void {
    const run = this.adopt(params.runId);
    if (run.progress(params)) {
      this.events.fire({ kind: 'progress', run, params });
    }
  }

  private log(params: LogParams): void {
    const run = this.adopt(params.runId);
    if (run.log(params)) {
      this.events.fire({ kind: 'log', run, params });
    }
  }

  private complete(params: CompleteParams): void {
    const run = this.adopt(params.runId);
    if (params.status === 'interrupted' && this.followed.has(run.runId) && params.seq > run.seq) {
      void this.interrupted(run, params);
    } else {
      this.ended(run, params);
    }
  }

  private ended(run: RunModel, params: CompleteParams): void {
    if (run.complete(params)) {
      this.followed.delete(run.runId);
      this.events.fire({ kind: 'complete', run, params });
    }
  }

  /** The daemon that carried the run out is gone: its run goes on in this one, if the user wants so. */
  private async interrupted(run: RunModel, params: CompleteParams): Promise<void> {
    try {
      if (await (this.options.mayResume?.(run) ?? true)) {
        run.seq = params.seq;
        await this.connection.request('run.resume', { runId: run.runId });
        return;
      }
    } catch (error) {
      this.options.onError?.(run, error);
      run.seq = params.seq - 1;
    }
    this.ended(run, params);
  }

  private stateChanged(running: boolean): void {
    const back = running && !this.connected;
    this.connected = running;
    if (back) {
      for (const run of this.running) {
        void this.catchUp(run);
      }
    }
  }

  /** Asks the new daemon for what the one that died could not tell any more. */
  private async catchUp(run: RunModel): Promise<void> {
    try {
      await this.connection.request('run.subscribe', { runId: run.runId, fromSeq: run.seq + 1 });
    } catch (error) {
      this.options.onError?.(run, error);
    }
  }
}
