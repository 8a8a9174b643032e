import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GraderResult, TrialResult } from '../../src/daemon/protocol';
import { findingsOf, merged } from '../../src/explorer/findings';

function grader(name: string, more: Partial<GraderResult>): GraderResult {
  return { name, type: 'text', score: 0, passed: false, weight: 1, durationMs: 1, ...more };
}

function trial(graders: GraderResult[], more: Partial<TrialResult> = {}): TrialResult {
  return { taskId: 'greet', trialNum: 1, verdict: 'failed', score: 0.5, durationMs: 5, output: 'Good evening.\n', graders, ...more };
}

test('only failed graders have findings', () => {
  const found = findingsOf(trial([
    grader('fine', { passed: true }),
    grader('person', { needsReview: true }),
    grader('greets', { feedback: 'the output does not contain "hello"' }),
  ]));
  assert.deepEqual(found, [{ grader: 'greets', message: 'the output does not contain "hello"', trials: [1] }]);
});

test('checks of the output are compared with the output, other checks with their detail', () => {
  const [output, file] = findingsOf(trial([
    grader('greets', { details: [
      { check: 'contains hello', passed: false, detail: 'the output does not contain "hello"' },
      { check: 'not_contains bye', passed: true },
    ] }),
    grader('wrote', { details: [{ check: 'a.txt exists', passed: false, detail: 'a.txt does not exist' }] }),
  ]));
  assert.deepEqual([output?.expected, output?.actual], ['contains hello', 'Good evening.']);
  assert.deepEqual([file?.expected, file?.actual], ['a.txt exists', 'a.txt does not exist']);
});

test('compared lists are expected and actual', () => {
  const [found] = findingsOf(trial([grader('tools', { details: { expected: ['read', 'edit'], actual: ['read'], f1: 0.6 } })]));
  assert.deepEqual([found?.expected, found?.actual], ['read\nedit', 'read']);
});

test('an error of the harness is shown, and so is a verdict without a reason', () => {
  assert.equal(findingsOf(trial([], { verdict: 'error', error: 'agent: exit status 3' }))[0]?.message, 'agent: exit status 3');
  assert.equal(findingsOf(trial([], { verdict: 'timeout' }))[0]?.message, 'The trial took too long.');
  assert.equal(findingsOf({ ...trial([]), graders: null })[0]?.message, 'The trial failed with score 0.50.');
});

test('findings that several trials have in common are shown once, the most frequent first', () => {
  const said = (message: string, n: number): TrialResult => trial([grader('greets', { feedback: message })], { trialNum: n });
  const all = merged([said('rare', 1), said('often', 2), said('often', 3)].flatMap(findingsOf));
  assert.deepEqual(all.map((f) => [f.message, f.trials]), [['often', [2, 3]], ['rare', [1]]]);
});
