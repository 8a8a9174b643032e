// Takes the pictures of the README over from those that the tests in the real editor
// have left:
//
//   node scripts/screenshots.mjs [DIR]
//
// DIR is .ci/out/editors of the repository when it is not named.

import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const extension = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const from = process.argv[2] ?? path.join(extension, '../../.ci/out/editors');
const to = path.join(extension, 'media/screenshots');

// Names in the README, and those of the tests, which have a number before them.
const pictures = { 'results.png': 'past-runs', 'trial.png': 'transcript', 'compare.png': 'compare' };

mkdirSync(to, { recursive: true });
const there = readdirSync(from);
for (const [name, shot] of Object.entries(pictures)) {
  const file = there.find((f) => new RegExp(`^\\d+-${shot}\\.png$`).test(f));
  if (!file) {
    console.error(`${from} has no picture ${shot}; make test-editors takes it`);
    process.exitCode = 1;
    continue;
  }
  copyFileSync(path.join(from, file), path.join(to, name));
}
