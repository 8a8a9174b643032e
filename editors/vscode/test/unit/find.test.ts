import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { candidates, expand, findProgram, type Surroundings } from '../../src/daemon/find';
import { isProgram, locate } from '../../src/daemon/program';

let home: string;

before(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'waza-find-'));
});

after(() => rm(home, { recursive: true, force: true }));

function where(env: NodeJS.ProcessEnv = {}): Surroundings {
  return { env, platform: 'linux', home, folder: path.join(home, 'work') };
}

async function program(name: string, script: string): Promise<string> {
  const file = path.join(home, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
  return file;
}

test('a setting can contain the home directory and the workspace', () => {
  assert.equal(expand(' ~/bin/waza ', where()), path.join(home, 'bin/waza'));
  assert.equal(expand('${workspaceFolder}/waza', where()), path.join(home, 'work/waza'));
  assert.equal(expand('tools/waza', where()), path.join(home, 'work/tools/waza'));
  assert.equal(expand('waza2', where()), 'waza2');
});

test('PATH has priority over the directories of Go, and relative directories on it are ignored', () => {
  const list = candidates('waza', where({ PATH: '/a:.:bin::/b', GOBIN: '/gobin', GOPATH: '/go1:/go2' }));
  assert.deepEqual(list.slice(0, 6), ['/a/waza', '/b/waza', '/gobin/waza', '/go1/bin/waza', '/go2/bin/waza', path.join(home, 'go/bin/waza')]);
  assert.ok(list.every((file) => path.isAbsolute(file)));
});

test('on Windows the program has its extension', () => {
  const list = candidates('waza', { ...where({ Path: '/a' }), platform: 'win32' });
  assert.equal(list[0], '/a/waza.exe');
});

test('a file that is not executable is not found', async () => {
  const dir = path.join(home, 'plain');
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'waza'), 'text');
  const found = await program('second/waza', 'exit 0');
  assert.equal(await findProgram('', where({ PATH: `${dir}:${path.dirname(found)}` })), found);
  assert.equal(await findProgram(path.join(dir, 'waza'), where()), undefined);
});

test('the program that is found must be waza, and new enough', async () => {
  const waza = await program('good/waza', 'echo \'{"version": "v99.0.0"}\'');
  const old = await program('old/waza', 'echo \'{"version": "v0.0.1"}\'');
  const other = await program('other/waza', 'echo fencing');
  const broken = await program('broken/waza', 'exit 3');
  const good = await locate(waza, where(), process.env);
  assert.deepEqual(good, { file: waza, version: 'v99.0.0' });
  const reasons = await Promise.all([old, other, broken, path.join(home, 'none')].map(async (file) => {
    const found = await locate(file, where(), process.env);
    return isProgram(found) ? 'found' : found.reason;
  }));
  assert.deepEqual(reasons, ['too old', 'not waza', 'not waza', 'not found']);
});

test('the message about a missing program names the setting', async () => {
  const found = await locate('/nowhere/waza', where(), process.env);
  assert.ok(!isProgram(found));
  assert.match(found.message, /waza\.path.*\/nowhere\/waza/);
});
