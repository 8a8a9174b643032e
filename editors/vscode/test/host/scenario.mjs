// Scenarios: actions in a window and their visible effects. Each is reported like a Go
// test, so that .ci/results lists it with the others, and leaves pictures.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

// Album numbers pictures in the order in which they are taken.
export class Album {
  constructor(dir) {
    this.dir = dir;
    this.taken = 0;
    mkdirSync(dir, { recursive: true });
  }

  next(name, kind = 'png') {
    const number = String(++this.taken).padStart(2, '0');
    return path.join(this.dir, `${number}-${name.toLowerCase().replace(/[^a-z0-9]+/g, '-')}.${kind}`);
  }
}

// Report prints results like go test -v.
export class Report {
  constructor(name) {
    this.name = name;
    this.failed = 0;
  }

  // skip reports that a scenario could not run, and why.
  skip(title, why) {
    const name = this.announce(title);
    console.log(`    skipped: ${why}\n--- SKIP: ${name} (0.00s)`);
  }

  // add runs one scenario. If it fails, it also runs then and reports its result.
  async add(title, scenario, then = []) {
    const name = this.announce(title);
    const start = Date.now();
    let result = 'PASS';
    try {
      await scenario();
    } catch (error) {
      result = 'FAIL';
      this.failed++;
      console.log(indent(error.stack ?? String(error)));
      for (const next of then) console.log(indent(await next().catch((e) => `and after it: ${e.message}`)));
    }
    console.log(`--- ${result}: ${name} (${((Date.now() - start) / 1000).toFixed(2)}s)`);
  }

  announce(title) {
    const name = `${this.name}/${title.replaceAll(' ', '_')}`;
    console.log(`=== RUN   ${name}`);
    return name;
  }
}

// evidence saves the page of a failed scenario, and reports where.
export async function evidence(window, album, title) {
  const picture = album.next(`failed ${title}`);
  await window.shot(picture);
  const text = await window.text();
  const file = picture.replace(/png$/, 'txt');
  writeFileSync(file, `${text}\n\nerrors of the page:\n${window.log.join('\n')}\n`);
  return `on the page (${path.basename(picture)}, ${path.basename(file)}):\n${text}`;
}

function indent(text = '') {
  return text.replace(/^/gm, '    ');
}
