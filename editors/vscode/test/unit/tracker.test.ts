import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionLost, type Connection, type DaemonState } from '../../src/daemon/connection';
import type { CompleteParams, ProgressParams } from '../../src/daemon/protocol';
import { Emitter } from '../../src/daemon/emitter';
import { statusText } from '../../src/model/status';
import { RunTracker, type TrackerOptions } from '../../src/model/tracker';

/** A daemon that answers, and dies, when a test says so. */
class FakeDaemon {
  state: DaemonState = 'running';
  readonly states = new Emitter<DaemonState>();
  readonly heard = new Map<string, Emitter<unknown>>();
  readonly asked: string[] = [];
  answer: (method: string) => unknown = () => ({ runId: 'r1', status: 'running' });

  readonly connection = {
    request: async (method: string): Promise<unknown> => {
      this.asked.push(method);
      return Promise.resolve().then(() => this.answer(method));
    },
    onNotification: (method: string, listener: (params: unknown) => void) => {
      const emitter = new Emitter<unknown>();
      this.heard.set(method, emitter);
      return emitter.event(listener);
    },
    get state(): DaemonState { return 'running'; },
    onDidChangeState: this.states.event,
  } as unknown as Connection;

  async become(...states: DaemonState[]): Promise<void> {
    for (const state of states) {
      this.state = state;
      this.states.fire(state);
      await settled();
    }
  }

  async say(method: 'eval.progress', params: Partial<ProgressParams>): Promise<void>;
  async say(method: 'eval.complete', params: Partial<CompleteParams>): Promise<void>;
  async say(method: string, params: object): Promise<void> {
    this.heard.get(method)?.fire({ runId: 'r1', ...params });
    await settled();
  }
}

function settled(): Promise<void> {
  return new Promise(setImmediate);
}

async function running(options?: TrackerOptions): Promise<{ daemon: FakeDaemon; tracker: RunTracker; kinds: string[] }> {
  const daemon = new FakeDaemon();
  const tracker = new RunTracker(daemon.connection, options);
  const kinds: string[] = [];
  tracker.onEvent((e) => { kinds.push(e.kind); });
  await tracker.runSuite({ path: '/s/eval.yaml' });
  await daemon.say('eval.progress', { seq: 1, event: 'run_start', totalTasks: 1, totalTrials: 4 });
  return { daemon, tracker, kinds };
}

test('a run that must not resume is over', async () => {
  const { daemon, tracker, kinds } = await running({ mayResume: () => Promise.resolve(false) });
  await daemon.become('restarting', 'running');
  await daemon.say('eval.complete', { seq: 2, status: 'interrupted', error: 'interrupted' });
  assert.deepEqual(daemon.asked, ['eval.run', 'run.subscribe']);
  assert.deepEqual(kinds, ['started', 'progress', 'complete']);
  assert.equal(tracker.get('r1')?.status, 'interrupted');
});

test('a run that cannot resume is over, and the error is reported', async () => {
  const errors: unknown[] = [];
  const { daemon, kinds } = await running({ onError: (_, error) => errors.push(error) });
  daemon.answer = (method) => {
    if (method === 'run.resume') {
      throw new Error('the suite is gone');
    }
    return {};
  };
  await daemon.become('restarting', 'running');
  await daemon.say('eval.complete', { seq: 2, status: 'interrupted' });
  assert.equal(kinds.at(-1), 'complete');
  assert.match(String(errors), /the suite is gone/);
});

test('if a daemon dies while it resumes a run, the next daemon resumes it', async () => {
  const { daemon, tracker, kinds } = await running();
  daemon.answer = (method) => {
    if (method === 'run.resume') {
      throw new ConnectionLost(method, 'restarting');
    }
    return {};
  };
  await daemon.become('restarting', 'running');
  await daemon.say('eval.complete', { seq: 2, status: 'interrupted' });
  daemon.answer = () => ({});
  await daemon.become('restarting', 'running');
  await daemon.say('eval.complete', { seq: 2, status: 'interrupted' });
  await daemon.say('eval.progress', { seq: 2, event: 'run_resumed', totalTasks: 1, totalTrials: 4, keptTrials: 0 });
  assert.deepEqual(daemon.asked, ['eval.run', 'run.subscribe', 'run.resume', 'run.subscribe', 'run.resume']);
  assert.equal(tracker.get('r1')?.status, 'running');
  assert.ok(!kinds.includes('complete'));
});

test('when the client gives up the daemon, its runs are lost and no longer waited for', async () => {
  const { daemon, tracker, kinds } = await running();
  await daemon.become('restarting', 'failed');
  assert.equal(kinds.at(-1), 'lost');
  assert.deepEqual(tracker.running, []);
  await daemon.become('starting', 'running');
  assert.deepEqual(daemon.asked, ['eval.run']);
});

test('a run that was followed late counts the trials that it keeps as done', async () => {
  const { daemon, tracker } = await running();
  await daemon.say('eval.progress', { runId: 'r2', seq: 40, event: 'run_resumed', totalTasks: 1, totalTrials: 4, keptTrials: 3 });
  await daemon.say('eval.progress', { runId: 'r2', seq: 41, event: 'trial_complete', taskId: 'a', trialNum: 4, totalTrials: 4, status: 'passed' });
  assert.deepEqual(tracker.get('r2')?.tally(), { total: 4, done: 4, running: 0, passed: 1, failed: 0, errors: 0 });
});

test('only a limited number of finished runs is remembered', async () => {
  const { daemon, tracker } = await running();
  for (let n = 2; n <= 200; n++) {
    await daemon.say('eval.complete', { runId: `r${n}`, seq: 1, status: 'completed' });
  }
  assert.ok(tracker.runs.length <= 52, String(tracker.runs.length));
  assert.ok(tracker.get('r1'), 'an active run is never forgotten');
  assert.ok(tracker.get('r200'));
});

test('the status bar shows the progress of runs, then the result', async () => {
  const { daemon, tracker } = await running();
  const text = (): string | undefined => statusText(tracker.running, tracker.get('r1'))?.text;
  assert.equal(text(), '$(beaker~spin) 0/4');
  for (const [i, status] of ['passed', 'failed', 'error'].entries()) {
    await daemon.say('eval.progress', { seq: 2 + i, event: 'trial_complete', taskId: 'a', trialNum: i + 1, totalTrials: 4, status });
  }
  assert.equal(text(), '$(beaker~spin) 3/4 1 failed 1 error');
  const summary = { total: 5, passed: 1, failed: 1, errors: 0, skipped: 2, cancelled: 1 } as NonNullable<CompleteParams['summary']>;
  await daemon.say('eval.complete', { seq: 9, status: 'completed', summary });
  assert.equal(text(), '$(error) 1/2');
});
