// The programs for the tests in a real editor, and where .ci/test-editors puts them.

import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = path.dirname(fileURLToPath(import.meta.url));
export const extension = path.resolve(here, '../..');
export const repository = path.resolve(extension, '../..');

// defaultTools returns the directory where make test-editors installs programs.
export function defaultTools() {
  return path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'waza-editors');
}

// findTools returns the paths of the programs; missing lists those that do not exist,
// and how to get them.
export function findTools(dir) {
  const tools = {
    node: path.join(dir, 'node_modules/node/bin/node'),
    codeServer: path.join(dir, 'code-server/package/out/node/entry.js'),
    playwright: path.join(dir, 'node_modules/playwright-core/package.json'),
    chromium: onPath('chromium', 'chromium-browser', 'google-chrome'),
    missing: [],
  };
  if (!existsSync(tools.node)) tools.missing.push('node 24, which code-server needs, could not be installed from npm');
  if (!existsSync(tools.codeServer)) tools.missing.push('code-server could not be installed from npm');
  if (!existsSync(tools.playwright)) tools.missing.push('playwright-core could not be installed from npm');
  if (!tools.chromium) tools.missing.push('chromium is not installed (apt-get install chromium)');
  return tools;
}

// launcher returns the part of playwright that starts Chromium.
export function launcher(tools) {
  return createRequire(tools.playwright)('playwright-core').chromium;
}

// still waits, in a page, until nothing fades or moves, except endless animations. Pass it to
// evaluate of a page or frame.
export function still() {
  return Promise.all(
    document.getAnimations()
      .filter((a) => a.playState === 'running' && a.effect.getComputedTiming().endTime !== Infinity)
      .map((a) => a.finished.catch(() => {})), // a cancelled one has ended, too
  ).then(() => true);
}

function onPath(...names) {
  for (const name of names)
    for (const dir of (process.env.PATH ?? '').split(path.delimiter)) {
      const file = path.join(dir, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // not here
      }
    }
  return '';
}
