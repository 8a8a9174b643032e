#!/usr/bin/env node
// Opens the extension in code-server, to try it by hand:
//
//   node editors/vscode/test/host/open.mjs [--port 8391] [--dir DIR] [--tools DIR] [--workspace
// DIR] [--vsix FILE] [--trust] [--light] [--shot FILE]
//
// It builds waza and, unless --vsix is given, the extension, installs it, prints the address to
// open and runs until it is interrupted. With --shot it only takes a picture of the window and
// ends. All files are below DIR, by default a temporary directory. It needs the programs that make
// test-editors installs, and npm ci in editors/vscode.

import { mkdtemp } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { buildExtension, buildWaza, copyWorkspace, surroundings } from './build.mjs';
import { Server } from './server.mjs';
import { defaultTools, findTools } from './tools.mjs';
import { launch, Window } from './window.mjs';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    dir: { type: 'string' },
    tools: { type: 'string', default: defaultTools() },
    workspace: { type: 'string' },
    vsix: { type: 'string' },
    trust: { type: 'boolean' },
    light: { type: 'boolean' },
    shot: { type: 'string' },
  },
});

const tools = findTools(options.tools);
if (tools.missing.length) {
  console.error(tools.missing.join('\n'));
  process.exit(2);
}
const dir = options.dir ?? (await mkdtemp(path.join(os.tmpdir(), 'waza-window-')));
await buildWaza(dir);
await Server.install(tools, dir, options.vsix ?? (await buildExtension()));
const workspace = options.workspace ? path.resolve(options.workspace) : await copyWorkspace(dir);
const server = await Server.start(tools, dir, {
  port: Number(options.port),
  trust: options.trust,
  env: surroundings(dir),
  settings: options.light ? { 'workbench.colorTheme': 'Light 2026' } : {},
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.stop().then(() => process.exit(0)));
console.log(server.page(workspace));
if (options.shot) {
  const browser = await launch(tools);
  const window = await Window.open(browser, server.page(workspace));
  await window.shot(options.shot);
  await browser.close();
  await server.stop();
} else {
  console.log(`data, logs and workspace: ${dir}\nCtrl-C ends it`);
}
