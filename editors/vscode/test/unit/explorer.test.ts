import assert from 'node:assert/strict';
import { test } from 'node:test';
import { graderLine } from '../../src/explorer/locate';
import { duration, splitId, terminalText } from '../../src/explorer/names';
import { plan } from '../../src/explorer/selection';

const tasks = (): string[] => ['a', 'b', 'c'];

test('a suite runs as a whole, or as the tasks that are not excluded', () => {
  assert.deepEqual(plan([{ path: '/s' }], [], tasks), [{ path: '/s' }]);
  assert.deepEqual(plan([{ path: '/s' }], [{ path: '/s', task: 'b' }], tasks), [{ path: '/s', tasks: ['a', 'c'] }]);
  assert.deepEqual(plan([{ path: '/s' }], [{ path: '/s' }], tasks), []);
  assert.deepEqual(plan([{ path: '/s' }], tasks().map((task) => ({ path: '/s', task })), tasks), []);
});

test('tasks of one suite make one run, and each suite has its own run', () => {
  const chosen = [{ path: '/s', task: 'a' }, { path: '/t', task: 'x' }, { path: '/s', task: 'b' }, { path: '/s', task: 'a' }];
  assert.deepEqual(plan(chosen, [], tasks), [{ path: '/s', tasks: ['a', 'b'] }, { path: '/t', tasks: ['x'] }]);
});

test('a trial selected alone runs alone, unless its task is selected, too', () => {
  const two = { path: '/s', task: 'a', trial: 2 };
  assert.deepEqual(plan([two, { path: '/s', task: 'b', trial: 2 }, { ...two, trial: 3 }], [], tasks),
    [{ path: '/s', trial: 2, tasks: ['a', 'b'] }, { path: '/s', trial: 3, tasks: ['a'] }]);
  assert.deepEqual(plan([two, { path: '/s', task: 'a' }], [], tasks), [{ path: '/s', tasks: ['a'] }]);
});

test('ids of cells are distinguished from ids that contain brackets themselves', () => {
  const known = (id: string): boolean => id === 'greet' || id === 'a[1]';
  assert.deepEqual(splitId('greet[model=small]', known), { task: 'greet', cell: 'model=small' });
  assert.deepEqual(splitId('a[1]', known), { task: 'a[1]', cell: undefined });
  assert.deepEqual(splitId('a[1][model=small]', known), { task: 'a[1]', cell: 'model=small' });
  assert.deepEqual(splitId('[x]', known), { task: '[x]', cell: undefined });
});

test('a grader is found where it is declared, first below its task', () => {
  const text = [
    'graders:', '  - name: polite', '  - {type: text, name: "short"}',
    'tasks:', '  - id: a', '    graders:', '      - type: text', '        name: polite # again', '  - id: b',
  ].join('\n');
  assert.equal(graderLine(text, 'polite', 4), 7);
  assert.equal(graderLine(text, 'polite', 8), 1);
  assert.equal(graderLine(text, 'short', 4), 2);
  assert.equal(graderLine(text, 'pol.te', 0), undefined);
});

test('durations and texts are formatted for people and terminals', () => {
  assert.deepEqual([0.4, 830, 1200, 59_960, 200_000, 120_000].map(duration), ['0 ms', '830 ms', '1.2 s', '60.0 s', '3 min 20 s', '2 min']);
  assert.equal(terminalText('a\nb\r\nc\rd'), 'a\r\nb\r\nc\r\nd');
});
