import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Replay } from './replay';

// The recordings that the tests of all clients replay, see their README.md.
const directory = path.join('..', 'dialogues');
const dialogues = readdirSync(directory).filter((name) => name.endsWith('.jsonl'));

test('there are dialogues to replay', () => {
  assert.ok(dialogues.length >= 10, `${dialogues.length} in ${directory}`);
});

for (const name of dialogues) {
  test(`dialogue ${name}`, () => new Replay().play(path.join(directory, name)));
}
