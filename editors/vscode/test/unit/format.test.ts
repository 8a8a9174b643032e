import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Counts, RunInfo } from '../../src/daemon/protocol';
import {
  agoText, durationText, moneyText, outcomeOf, outcomeOfVerdict, rateText, runDescription, scoreText, shortText, suspicionText,
  suspiciousText,
} from '../../src/model/format';

const now = Date.parse('2026-11-22T12:00:00Z');
const counts = (more: Partial<Counts> = {}): Counts => ({ total: 10, passed: 0, failed: 0, errors: 0, timeouts: 0, cancelled: 0, skipped: 0, ...more });

function info(more: Partial<RunInfo> = {}): RunInfo {
  return {
    runId: 'r', status: 'completed', suite: { path: '/w/eval.yaml', name: 'demo' }, executor: 'mock',
    startedAt: '2026-11-22T11:58:00Z', endedAt: null, tasks: counts({ passed: 7, failed: 3 }), trials: counts(), ...more,
  };
}

test('relative times', () => {
  for (const [at, want] of [
    ['2026-11-22T11:59:30Z', 'just now'], ['2026-11-22T12:00:05Z', 'just now'], ['2026-11-22T11:59:00Z', '1 min ago'],
    ['2026-11-22T09:00:00Z', '3 hours ago'], ['2026-11-21T11:00:00Z', '1 day ago'], ['2026-09-22T12:00:00Z', '2 months ago'],
    ['2023-11-22T12:00:00Z', '3 years ago'],
  ] as const) {
    assert.equal(agoText(at, now), want, at);
  }
});

test('times, tokens and money', () => {
  assert.deepEqual([7, 999, 1500, 59_400, 59_900, 200_000, 3_600_000].map(durationText), ['7 ms', '999 ms', '1.5 s', '59 s', '60 s', '3 min 20 s', '1 h 0 min']);
  assert.deepEqual([950, 1234, 34_000, 5_600_000, 999_900].map(shortText), ['950', '1.2k', '34k', '5.6M', '1.0M']);
  assert.deepEqual([0.00001, 0.0042, 0.0525, 12.5].map(moneyText), ['$0.00001', '$0.0042', '$0.0525', '$12.5000']);
  assert.deepEqual([0, 0.5, 0.999, 1].map(scoreText), ['0.00', '0.50', '0.999', '1.00']);
});

test('a pass rate with its interval, or the rates that reviews can lead to', () => {
  const rate = (passRate: number | null, low: number, high: number) => ({ ...counts(), passRate, passRateInterval: passRate === null ? null : { low, high } });
  assert.equal(rateText(rate(0.7, 0.4312, 0.8844)), ', 70 % [43 – 89 %]');
  assert.equal(rateText(rate(0.001, 0.00018, 0.00565)), ', 0.1 % [0 – 0.6 %]');
  assert.equal(rateText(rate(1, 0.7225, 1)), ', 100 % [72 – 100 %]');
  assert.equal(rateText({ ...rate(null, 0, 0), needsReview: 3, passRateBounds: { low: 0.5, high: 0.8 } }), ', 50 – 80 % once 3 are reviewed');
  assert.equal(rateText(rate(null, 0, 0)), '');
});

test('the description of a run', () => {
  assert.equal(runDescription(info({ model: 'm-1' }), now), '7/10 · 2 min ago · m-1');
  assert.equal(runDescription(info({ models: ['a', 'b'], model: 'a' }), now), '7/10 · 2 min ago · a, b');
  assert.equal(runDescription(info({ status: 'interrupted' }), now), '7/10 · interrupted · 2 min ago');
  assert.equal(runDescription(info({ damage: { events: 1, parts: 1 } }), now), '7/10 · damaged record · 2 min ago');
  assert.equal(runDescription(info({ damage: { events: 0, parts: 0 } }), now), '7/10 · 2 min ago', 'only doubts');
});

test('an error outranks a failure, and the tasks of a run that did not complete do not count', () => {
  const of = (tasks: Partial<Counts>, status: RunInfo['status'] = 'completed'): string => outcomeOf(info({ status, tasks: counts(tasks) }));
  assert.equal(of({ passed: 10 }), 'passed');
  assert.equal(of({ passed: 9, timeouts: 1 }), 'failed');
  assert.equal(of({ failed: 9, errors: 1 }), 'error');
  assert.equal(of({ passed: 9, needsReview: 1 }), 'review');
  assert.equal(of({}), 'none');
  assert.equal(of({ passed: 10 }, 'cancelled'), 'cancelled');
  assert.equal(of({ passed: 10 }, 'interrupted'), 'interrupted');
  assert.equal(of({ failed: 1 }, 'running'), 'running');
  assert.equal(outcomeOfVerdict(undefined, true), 'running');
  assert.equal(outcomeOfVerdict('timeout', false), 'failed');
});

test('suspicious passes are described like on the command line', () => {
  assert.equal(suspiciousText(undefined), '');
  assert.equal(suspiciousText(2), '2 suspicious');
  assert.equal(suspicionText({ trialNum: 1, rule: 'edits-tests', place: 'test.sh', evidence: 'changed by the agent' }),
    'trial 1: edits-tests in test.sh: changed by the agent');
});
