import { spawn, type ChildProcess } from 'node:child_process';
import * as vscode from 'vscode';
import {
  CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, type LanguageClientOptions, type Middleware,
} from 'vscode-languageclient/node';
import { Emitter, type Disposable } from './emitter';
import { Backoff } from './backoff';
import { ConnectionLost, type Cancellation, type Connection, type DaemonState } from './connection';
import { documentSelector, watchedFiles } from './documents';
import { surroundings } from './find';
import { isProgram, locate, type NoProgram, type Program } from './program';
import type { Methods, Notifications } from './protocol';
import { firstFolder, readSettings, type Settings } from './settings';

/** Subcommand of waza for editors. */
const subcommand = 'lsp';

/** Time for a daemon to end on its own: it cancels its runs and cleans up after them. */
const stopTimeoutMs = 5_000;

/** One process of waza and the language client that is connected to it. */
interface Life {
  client: LanguageClient;
  process: ChildProcess | undefined;
  since: number;
  /** The client asked it to end, so its end is not a death. */
  ending: boolean;
}

/**
 * The daemon of this window: one `waza lsp`, whose connection carries the Language Server Protocol
 * and waza's own methods. When it dies, it restarts after a pause that grows each time, until the
 * client gives up.
 *
 * Each process gets its own language client, so that no state of a dead process remains. Listeners
 * here do not notice the change.
 */
export class Daemon implements Connection, Disposable {
  private current: Life | undefined;
  private settled: Promise<void> = Promise.resolve();
  private restart: NodeJS.Timeout | undefined;
  private disposed = false;
  private readonly backoff = new Backoff();
  private readonly watchers = watchedFiles();
  private readonly states = new Emitter<DaemonState>();
  private readonly listeners = new Map<string, Emitter<unknown>>();
  private stateNow: DaemonState = 'idle';
  /** Reason for the state missing. */
  problem: NoProgram | undefined;
  program: Program | undefined;
  readonly onDidChangeState = this.states.event;

  constructor(private readonly log: vscode.LogOutputChannel, private readonly middleware: Middleware = {}) {}

  get state(): DaemonState {
    return this.stateNow;
  }

  /** Process id of the daemon, if it runs. */
  get pid(): number | undefined {
    return this.current?.process?.pid;
  }

  /** Starts or restarts the daemon. Never rejected: state shows the result. */
  start(): Promise<void> {
    return this.inTurn(async () => {
      this.backoff.reset();
      await this.end();
      await this.launch('starting');
    });
  }

  /** Ends the daemon and everything that it runs. */
  stop(): Promise<void> {
    return this.inTurn(async () => {
      await this.end();
      this.become('idle');
    });
  }

  async request<M extends keyof Methods>(method: M, params: Methods[M]['params'], token?: Cancellation): Promise<Methods[M]['result']>;
  async request(method: string, params: object, token?: Cancellation): Promise<unknown>;
  async request(method: string, params: object, token?: Cancellation): Promise<unknown> {
    await this.settled;
    const life = this.current;
    if (!life || this.stateNow !== 'running') {
      throw new ConnectionLost(method, this.stateNow);
    }
    try {
      return await (token ? life.client.sendRequest(method, params, token as vscode.CancellationToken) : life.client.sendRequest(method, params));
    } catch (error) {
      if (this.current !== life || !life.client.isRunning()) {
        throw new ConnectionLost(method, this.stateNow);
      }
      throw error;
    }
  }

  onNotification<N extends keyof Notifications>(method: N, listener: (params: Notifications[N]) => void): Disposable {
    let emitter = this.listeners.get(method);
    if (!emitter) {
      emitter = new Emitter<unknown>((error) => { this.log.error(`${method}: ${String(error)}`); });
      this.listeners.set(method, emitter);
      if (this.current) {
        this.forward(this.current.client, method, emitter);
      }
    }
    return emitter.event(listener as (params: unknown) => void);
  }

  dispose(): void {
    void this.close();
  }

  /** Ends the daemon for good, and waits until it has ended. */
  async close(): Promise<void> {
    this.disposed = true;
    await this.stop();
    this.states.dispose();
    for (const watcher of this.watchers) {
      watcher.dispose();
    }
  }

  /** Runs one start or stop at a time, in the order of the requests. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    clearTimeout(this.restart);
    this.settled = this.settled.then(work).catch((error: unknown) => { this.log.error(String(error)); });
    return this.settled;
  }

  private become(state: DaemonState): void {
    if (state !== this.stateNow) {
      this.stateNow = state;
      this.states.fire(state);
    }
  }

  private async launch(as: 'starting' | 'restarting'): Promise<void> {
    if (this.disposed || !vscode.workspace.isTrusted) {
      this.become('idle');
      return;
    }
    this.become(as);
    const settings = readSettings();
    const folder = firstFolder();
    const env = { ...process.env, ...settings.env };
    const found = await locate(settings.path, surroundings(folder), env);
    if (!isProgram(found)) {
      this.problem = found;
      this.log.warn(found.message);
      this.become('missing');
      return;
    }
    this.problem = undefined;
    this.program = found;
    await this.connect(found, settings, env, folder);
  }

  private async connect(program: Program, settings: Settings, env: NodeJS.ProcessEnv, folder: string | undefined): Promise<void> {
    const life: Life = { client: undefined as unknown as LanguageClient, process: undefined, since: Date.now(), ending: false };
    const start = (): Promise<ChildProcess> => {
      const args = [subcommand, ...settings.args];
      this.log.info(`starting ${program.file} ${args.join(' ')} (${program.version})`);
      life.process = spawn(program.file, args, { env, cwd: folder, windowsHide: true });
      life.process.stderr?.on('data', (chunk: Buffer) => { this.log.append(chunk.toString()); });
      return Promise.resolve(life.process);
    };
    life.client = new LanguageClient('waza', 'waza', start, this.clientOptions(settings, life));
    for (const [method, emitter] of this.listeners) {
      this.forward(life.client, method, emitter);
    }
    this.current = life;
    try {
      await life.client.start();
      this.become('running');
    } catch (error) {
      this.log.error(`waza could not be started: ${String(error)}`);
      this.lost(life);
    }
  }

  private clientOptions(settings: Settings, life: Life): LanguageClientOptions {
    return {
      documentSelector: documentSelector(settings.taskFiles),
      synchronize: { fileEvents: this.watchers },
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: this.middleware,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          this.lost(life);
          return { action: CloseAction.DoNotRestart, handled: true, message: 'the connection to waza is closed' };
        },
      },
    };
  }

  private forward(client: LanguageClient, method: string, emitter: Emitter<unknown>): void {
    client.onNotification(method, (params: unknown) => { emitter.fire(params); });
  }

  /** Handles the end of a daemon that the client did not ask to end. */
  private lost(life: Life): void {
    if (life.ending || this.current !== life) {
      return;
    }
    this.current = undefined;
    life.process?.kill('SIGKILL');
    const verdict = this.backoff.died(Date.now() - life.since);
    if (verdict.action === 'give up') {
      this.log.error('waza ended too often and does not restart');
      this.become('failed');
      return;
    }
    this.log.warn(`waza has ended; it restarts in ${verdict.afterMs / 1000} s`);
    this.become('restarting');
    this.restart = setTimeout(() => {
      void this.inTurn(() => this.launch('restarting'));
    }, verdict.afterMs);
  }

  private async end(): Promise<void> {
    const life = this.current;
    this.current = undefined;
    if (!life) {
      return;
    }
    life.ending = true;
    try {
      await life.client.dispose(stopTimeoutMs);
    } catch (error) {
      this.log.warn(`waza did not end on its own: ${String(error)}`);
      life.process?.kill('SIGKILL');
    }
  }
}
