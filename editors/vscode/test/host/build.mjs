// Builds what the editor needs: waza, the packed extension and a workspace, all from
// this tree.

import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { extension, here, repository } from './tools.mjs';

const run = promisify(execFile);

// buildWaza writes the program to DIR/bin.
export async function buildWaza(dir) {
  await mkdir(path.join(dir, 'bin'), { recursive: true });
  await run(process.env.GO || 'go', ['build', '-o', path.join(dir, 'bin/waza'), './cmd/waza'], { cwd: repository });
}

// buildExtension packs the extension, whose own dependencies are already installed.
export async function buildExtension() {
  await run('npm', ['run', 'package'], { cwd: extension });
  return path.join(extension, 'out/waza.vsix');
}

// copyWorkspace returns a copy of the workspace, because scenarios edit it.
export async function copyWorkspace(dir, name = 'workspace') {
  const to = path.join(dir, name);
  await cp(path.join(here, 'workspace'), to, { recursive: true });
  return to;
}

// surroundings returns the environment in which the extension finds waza on the PATH,
// and waza finds its records and the gate that suites/refactor waits at.
export function surroundings(dir) {
  return {
    PATH: [path.join(dir, 'bin'), process.env.PATH].join(path.delimiter),
    WAZA_STATE: path.join(dir, 'state'),
    WAZA_TEST_GATE: path.join(dir, 'gate'),
  };
}
