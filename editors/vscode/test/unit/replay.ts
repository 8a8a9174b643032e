import { EventEmitter, once } from 'node:events';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { ConnectionLost, type Connection, type DaemonState } from '../../src/daemon/connection';
import type { Notifications } from '../../src/daemon/protocol';
import { Emitter, type Disposable } from '../../src/daemon/emitter';
import { passedTrials, type RunModel } from '../../src/model/run';
import { RunTracker } from '../../src/model/tracker';

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: Failure;
}

interface Failure {
  code: number;
  message: string;
  data?: { diagnostics?: Diagnostic[] };
}

interface Diagnostic {
  file: string;
  line: number;
  severity: string;
  code: string;
}

interface Call {
  do: string;
  path?: string;
  tasks?: string[];
  trial?: number;
  verbose?: boolean;
  run?: string;
  from?: number;
}

interface Line {
  note?: string;
  call?: Call;
  client?: Message;
  server?: Message;
  die?: boolean;
  expect?: { runs: Record<string, Record<string, unknown>>; error?: Record<string, unknown> };
}

interface Asked {
  method: string;
  params: object;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** A missing request fails its test instead of blocking it. */
const patienceMs = 10_000;

/** The connection of a client whose daemon is a recording. */
class Recording implements Connection {
  state: DaemonState = 'running';
  private readonly states = new Emitter<DaemonState>();
  private readonly heard = new Map<string, Emitter<unknown>>();
  private readonly asked: Asked[] = [];
  private readonly open = new Set<Asked>();
  private readonly arrivals = new EventEmitter();
  readonly onDidChangeState = this.states.event;

  request(method: string, params: object): Promise<never> {
    if (this.state !== 'running') {
      return Promise.reject(new ConnectionLost(method, this.state));
    }
    return new Promise((resolve, reject) => {
      const asked: Asked = { method, params, resolve: resolve as (result: unknown) => void, reject };
      this.asked.push(asked);
      this.open.add(asked);
      this.arrivals.emit('request');
    });
  }

  onNotification<N extends keyof Notifications>(method: N, listener: (params: Notifications[N]) => void): Disposable {
    const emitter = this.heard.get(method) ?? new Emitter<unknown>();
    this.heard.set(method, emitter);
    return emitter.event(listener as (params: unknown) => void);
  }

  notify(message: Message): void {
    this.heard.get(message.method ?? '')?.fire(message.params);
  }

  /** Returns the next request, in the order in which they were sent. */
  async next(): Promise<Asked> {
    for (;;) {
      const asked = this.asked.shift();
      if (asked) {
        return asked;
      }
      await once(this.arrivals, 'request', { signal: AbortSignal.timeout(patienceMs) });
    }
  }

  answer(asked: Asked, reply: Message): void {
    this.open.delete(asked);
    if (reply.error) {
      asked.reject(Object.assign(new Error(reply.error.message), reply.error));
    } else {
      asked.resolve(reply.result);
    }
  }

  die(): void {
    this.become('restarting');
    for (const asked of this.open) {
      asked.reject(new ConnectionLost(asked.method, this.state));
    }
    this.open.clear();
  }

  revive(): void {
    this.become('running');
  }

  /** Checks that the test has read everything that the client sent. */
  done(): void {
    assert.deepEqual(this.asked.map((a) => a.method), [], 'the client sent more than was recorded');
  }

  private become(state: DaemonState): void {
    this.state = state;
    this.states.fire(state);
  }
}

/** Plays the daemon of a recorded dialogue to the extension's own tracker. */
export class Replay {
  private readonly daemon = new Recording();
  private readonly tracker = new RunTracker(this.daemon);
  private readonly ids = new Map<number, Asked>();
  /** Requests that the client's transport sends for it. */
  private readonly passedOver = new Set<number>();
  private readonly logs = new Map<string, string>();
  private failure: Failure | undefined;
  private dead = false;

  constructor() {
    this.tracker.onEvent((e) => {
      if (e.kind === 'log') {
        this.logs.set(e.run.runId, e.params.message);
      }
    });
  }

  async play(file: string): Promise<void> {
    for (const [i, text] of readFileSync(file, 'utf8').trimEnd().split('\n').entries()) {
      try {
        await this.line(JSON.parse(text) as Line);
      } catch (error) {
        throw new Error(`line ${i + 1}: ${text}`, { cause: error });
      }
    }
    this.daemon.done();
  }

  private async line(line: Line): Promise<void> {
    if (line.call) {
      this.call(line.call);
    } else if (line.client) {
      await this.client(line.client);
    } else if (line.server) {
      await this.server(line.server);
    } else if (line.die === true) {
      this.daemon.die();
      this.dead = true;
    } else if (line.expect) {
      this.expect(line.expect);
    } else {
      assert.ok(line.note !== undefined, 'unknown kind of line');
    }
  }

  private call(call: Call): void {
    this.failure = undefined;
    this.doing(call).catch((error: unknown) => { this.failure = error as Failure; });
  }

  private doing(call: Call): Promise<unknown> {
    const { path = '', run = '', tasks, trial, verbose } = call;
    const more = verbose === undefined ? {} : { verbose };
    switch (call.do) {
      case 'run':
        return tasks
          ? this.tracker.runTasks({ path, tasks, ...more, ...(trial === undefined ? {} : { trial }) })
          : this.tracker.runSuite({ path, ...more });
      case 'cancel':
        return this.tracker.cancel(run);
      case 'resume':
        return this.tracker.resume(run);
      case 'subscribe':
        return this.tracker.follow(run, undefined, call.from);
      default:
        throw new Error(`unknown call ${call.do}`);
    }
  }

  private async client(message: Message): Promise<void> {
    const id = message.id ?? 0;
    if (message.method === 'initialize') {
      this.passedOver.add(id);
      return;
    }
    const asked = await this.daemon.next();
    assert.equal(asked.method, message.method);
    for (const [name, value] of Object.entries(message.params ?? {})) {
      assert.deepEqual((asked.params as Record<string, unknown>)[name], value, name);
    }
    this.ids.set(id, asked);
  }

  private async server(message: Message): Promise<void> {
    if (message.id === undefined) {
      this.daemon.notify(message);
    } else if (this.passedOver.has(message.id)) {
      if (this.dead) {
        this.dead = false;
        this.daemon.revive();
      }
    } else {
      const asked = this.ids.get(message.id);
      assert.ok(asked, `reply to ${message.id}, which was not requested`);
      this.daemon.answer(asked, message);
    }
    await new Promise(setImmediate); // like between two messages of a real connection
  }

  private expect(expected: NonNullable<Line['expect']>): void {
    const runs = Object.fromEntries(this.tracker.runs.map((run) => [run.runId, this.shown(run)]));
    assert.deepEqual(Object.keys(runs).sort(), Object.keys(expected.runs).sort());
    for (const [runId, run] of Object.entries(expected.runs)) {
      for (const [member, value] of Object.entries(run)) {
        assert.deepEqual(shownRun(runs, runId)[member], value, `${runId} ${member}`);
      }
    }
    if (expected.error) {
      assert.deepEqual(shownError(this.failure), expected.error);
    }
  }

  private shown(run: RunModel): Record<string, unknown> {
    const tasks = [...run.tasks.values()].map((task) => [task.id, {
      name: task.name,
      verdict: task.verdict ?? 'running',
      passed: passedTrials(task),
      trials: Object.fromEntries([...task.trials.values()].map((t) => [String(t.number), t.verdict ?? 'running'])),
    }] as const);
    return {
      status: run.status, seq: run.seq, log: run.logs, lastLog: this.logs.get(run.runId), error: run.error, tasks: Object.fromEntries(tasks),
    };
  }
}

function shownError(error: Failure | undefined): Record<string, unknown> | undefined {
  const diagnostics = error?.data?.diagnostics?.map(({ file, line, severity, code }) => ({ file, line, severity, code }));
  return error && { code: error.code, message: error.message, ...(diagnostics ? { diagnostics } : {}) };
}

function shownRun(runs: Record<string, Record<string, unknown>>, runId: string): Record<string, unknown> {
  return runs[runId] ?? {};
}
