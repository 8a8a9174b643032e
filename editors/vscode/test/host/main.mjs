#!/usr/bin/env node
// Uses the packed extension in code-server like a person does, and reports every scenario in
// the format of go test -v.
//
//   node main.mjs --vsix FILE --waza DIR --shots DIR [--tools DIR] [--only PATTERN [--alone]]
//
// --waza is the directory of the program. Pictures of all steps are written to --shots. A
// scenario that fails leaves a picture, and the text of the page. --only plays the scenarios
// with matching names and, unless --alone is set, those that they depend on.

import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { Watch } from './processes.mjs';
import { Album, evidence, Report } from './scenario.mjs';
import { stages } from './scenarios/index.mjs';
import { Server } from './server.mjs';
import { Stage } from './stage.mjs';
import { defaultTools, findTools } from './tools.mjs';
import { launch } from './window.mjs';

const { values: options } = parseArgs({
  options: {
    vsix: { type: 'string' },
    waza: { type: 'string' },
    shots: { type: 'string' },
    tools: { type: 'string', default: defaultTools() },
    only: { type: 'string', default: '' },
    alone: { type: 'boolean' },
  },
});

const report = new Report('TestVSCode');
const tools = findTools(options.tools);
const dir = await mkdtemp(path.join(os.tmpdir(), 'waza-editor-'));
const here = new Watch(process.pid);
try {
  if (tools.missing.length) report.skip('the extension host', tools.missing.join('; '));
  else await play();
} finally {
  await rm(dir, { recursive: true, force: true });
}
process.exitCode = report.failed ? 1 : 0;

async function play() {
  const album = new Album(options.shots);
  const wanted = new RegExp(options.only);
  const browser = await launch(tools);
  here.look();
  try {
    for (const stage of stages) {
      const scenarios = stage.scenarios.filter((s) => (s.needed && !options.alone) || wanted.test(s.name));
      if (scenarios.some((s) => wanted.test(s.name))) await playOn(stage, scenarios, { browser, album });
    }
  } finally {
    await browser.close();
  }
  await report.add('no process remains', async () => none(here.end()));
}

// playOn plays the scenarios of one stage, each in the window that the previous one
// left.
async function playOn(stage, scenarios, { browser, album }) {
  const place = path.join(dir, stage.name);
  await mkdir(path.join(place, 'bin'), { recursive: true });
  await cp(path.join(options.waza, 'waza'), path.join(place, 'bin/waza'));
  await Server.install(tools, place, options.vsix);
  const s = await Stage.open({ tools, browser, album, dir: place, name: 'workspace', ...stage.options });
  try {
    for (const { name, run } of scenarios)
      await report.add(
        name,
        () => run(s),
        [() => evidence(s.window, album, name), () => s.reset()],
      );
  } finally {
    const left = await s.close();
    await report.add(`${stage.name} ends all its processes`, async () => none(left));
  }
}

function none(processes) {
  if (processes.length) throw new Error(`still running:\n${processes.map((p) => `${p.pid} ${p.args}`).join('\n')}`);
}
