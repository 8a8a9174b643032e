// Uses the page of the results panel in Chromium like a person does: with data of a
// real daemon, under the policy of the extension. A few lines below replace VS Code,
// which only forwards messages.
//
//   node test/page/panel.mjs WAZA TOOLS [SCREENSHOTS]
//
// WAZA is the program, TOOLS the directory where .ci/test-editors installs programs. It
// needs npm run build. Each scenario is reported in the format of go test -v.

import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import esbuild from 'esbuild';

import { Report } from '../host/scenario.mjs';
import { findTools, launcher, still } from '../host/tools.mjs';
import { Daemon } from './daemon.mjs';

const [waza, tools, screenshots] = process.argv.slice(2);
const extension = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const report = new Report('TestVSCode/results_page');
const found = findTools(path.resolve(tools));
if (found.missing.length > 0) {
  report.skip('in Chromium', found.missing.join('; '));
  process.exit();
}
const dir = mkdtempSync(path.join(os.tmpdir(), 'waza-panel-'));
const origin = 'https://panel.test';

async function load(file) {
  const { outputFiles } = await esbuild.build({ entryPoints: [path.join(extension, file)], bundle: true, platform: 'node', format: 'esm', write: false });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
const { documentOf } = await load('src/panel/page.ts');

const SUITE = `
name: letters
config:
  executor: command
  sandbox: off
  command: ["sh", "-c", "p=$(cat); while [ \\"$p\\" = 'Write later.' ] && ! [ -e ${dir}/gate ]; do sleep 0.05; done; echo 'Dear Ada' | tee letter.md"]
  trials_per_task: 2
  parallel: true
  workers: 2
graders:
  - {name: dear, type: text, config: {contains: [Dear]}}
tasks:
  - {id: good, prompt: Write a letter., inputs: {files: [{path: letter.md, content: "Hi\\n"}]}}
  - {id: bad, prompt: Write a book., graders: [{name: long, type: text, config: {contains: [chapter]}}]}
  - {id: late, prompt: Write later.}
`;

const THEMES = {
  'vscode-dark': { background: '#1f1f1f', foreground: '#cccccc', descriptionForeground: '#9d9d9d', link: '#4daafc' },
  'vscode-light': { background: '#ffffff', foreground: '#3b3b3b', descriptionForeground: '#717171', link: '#005fb8' },
  'vscode-high-contrast': { background: '#000000', foreground: '#ffffff', descriptionForeground: '#ffffff', link: '#21a6ff' },
};

// Panel is a page with the extension's part of its work.
class Panel {
  static async open(browser, daemon, theme = 'vscode-dark') {
    const panel = Object.assign(new Panel(), { daemon, wrong: [], said: [] });
    panel.context = await browser.newContext({ viewport: { width: 1100, height: 760 } });
    panel.page = await panel.context.newPage();
    panel.page.setDefaultTimeout(45_000);
    panel.page.on('pageerror', (e) => panel.wrong.push(e.message));
    panel.page.on('console', (m) => m.type() === 'error' && panel.wrong.push(m.text()));
    await panel.page.exposeFunction('said', (message) => panel.hear(message));
    await panel.page.addInitScript(bridge, { theme, colors: THEMES[theme] });
    return panel;
  }

  // show opens the document with the daemon's parts of the page.
  async show(runId) {
    const { page: parts } = await this.daemon.request('run.page', { runId, page: true });
    const html = documentOf(parts, { cspSource: origin, script: `${origin}/panel.js`, style: `${origin}/panel.css` });
    const files = { '/': html, '/panel.js': readFileSync(path.join(extension, 'dist/panel.js'), 'utf8'), '/panel.css': readFileSync(path.join(extension, 'media/panel/panel.css'), 'utf8') };
    const types = { '/': 'text/html', '/panel.js': 'text/javascript', '/panel.css': 'text/css' };
    await this.page.route('**/*', (route) => {
      const { pathname, origin: of } = new URL(route.request().url());
      if (of === origin && files[pathname]) return route.fulfill({ body: files[pathname], contentType: types[pathname] });
      this.wrong.push(`request: ${route.request().url()}`);
      return route.abort();
    });
    const ready = this.heard('ready');
    await this.page.goto(`${origin}/`);
    await ready;
    await this.send(runId);
  }

  // send sends the current data of the run.
  async send(runId, more = {}) {
    const { data, status } = await this.daemon.request('run.page', { runId, ...(more.against ? { against: more.against } : {}) });
    await this.post({ type: 'show', data, live: status === 'running', ...more });
    await this.page.locator('#table .task').first().waitFor();
  }

  post(message) {
    return this.page.evaluate((m) => window.dispatchEvent(new MessageEvent('message', { data: m })), message);
  }

  async hear(message) {
    this.said.push(message);
    this.listening?.(message);
    if (message.type !== 'trial') return;
    const { runId } = await this.page.evaluate(() => window.saved);
    const { trial, files } = await this.daemon.request('run.trial', { runId, taskId: message.taskId, trial: message.num });
    await this.post({ type: 'trial', id: message.id, trial: { ...trial, files } });
  }

  heard(type) {
    return new Promise((done) => {
      this.listening = (message) => message.type === type && done(message);
    });
  }

  // settled waits until nothing fades or moves, except endless animations, and checks that open
  // trials are opaque.
  async settled() {
    await this.page.evaluate(still);
    const opacities = await this.page.locator('#viewer[open]').evaluateAll((list) => list.map((e) => getComputedStyle(e).opacity));
    assert.ok(opacities.every((o) => o === '1'), `an open trial is opaque, got ${opacities}`);
  }

  async shot(name) {
    await this.settled();
    if (screenshots) await this.page.screenshot({ path: path.join(screenshots, `${name}.png`), animations: 'disabled' });
  }
}

// bridge runs in the page before everything else, like VS Code's own script.
function bridge({ theme, colors }) {
  window.acquireVsCodeApi = () => ({
    postMessage: (message) => window.said(message),
    getState: () => window.saved,
    setState: (state) => { window.saved = JSON.parse(JSON.stringify(state)); },
  });
  document.addEventListener('DOMContentLoaded', () => document.body.classList.add(theme));
  const put = () => {
    if (!document.documentElement) return setTimeout(put);
    const { style } = document.documentElement;
    style.setProperty('--vscode-editor-background', colors.background);
    style.setProperty('--vscode-editor-foreground', colors.foreground);
    style.setProperty('--vscode-descriptionForeground', colors.descriptionForeground);
    style.setProperty('--vscode-textLink-foreground', colors.link);
    style.setProperty('--vscode-contrastBorder', colors.foreground);
    style.setProperty('--vscode-font-family', 'system-ui, sans-serif');
    style.setProperty('--vscode-font-size', '13px');
    return undefined;
  };
  put();
}

const scenarios = {
  async 'a trial is requested, and shows its transcript and files'(panel, { done }) {
    await panel.show(done);
    assert.match(await panel.page.innerText('#bar'), /just now|ago/);
    await panel.page.click('#task-0');
    await panel.page.locator('tr.trial').first().click();
    await panel.page.locator('#viewer .body').waitFor();
    const text = await panel.page.innerText('#viewer');
    assert.match(text, /Dear Ada/);
    assert.match(text, /changed\s+letter\.md/);
    assert.deepEqual(panel.said.find((m) => m.type === 'trial'), { type: 'trial', id: 1, taskId: 'good', num: 1 });
    await panel.page.click('[aria-label="Go to the grader"]');
    assert.deepEqual(panel.said.at(-1), { type: 'openGrader', taskId: 'good', name: 'dear' });
    await panel.page.click('[aria-label="Go to the task"] >> nth=-1');
    assert.deepEqual(panel.said.at(-1), { type: 'openTask', taskId: 'good' });
    await panel.shot('panel-trial');
  },

  async 'newer data do not disturb the reader'(panel, { daemon, suite }) {
    rmSync(path.join(dir, 'gate'), { force: true });
    const runId = await daemon.run({ path: suite }, false);
    const task = (id) => (m) => m.method === 'eval.progress' && m.params.runId === runId && m.params.event === 'task_complete' && m.params.taskId === id;
    await daemon.until(task('good'));
    await panel.show(runId);
    await panel.post({ type: 'tally', live: true, tally: { total: 6, done: 3, running: 1, passed: 2, failed: 1, errors: 0 } });
    assert.match(await panel.page.innerText('#bar'), /3\/6 trials · 1 failed/);
    assert.ok(await panel.page.locator('[data-action="cancel"]').isVisible());
    await panel.shot('panel-live');
    await panel.page.click('#task-0');
    await panel.page.locator('[data-task="0"]').focus();
    await panel.page.evaluate(() => scrollTo(0, 60));
    const row = await panel.page.evaluate(() => document.querySelector('#body-0').innerText);
    await daemon.until(task('bad'));
    await panel.send(runId);
    assert.equal(await panel.page.evaluate(() => document.querySelector('#body-0').innerText), row, 'the open task stays open');
    assert.equal(await panel.page.evaluate(() => document.activeElement.dataset.task), '0');
    assert.equal(await panel.page.evaluate(() => scrollY), 60);
    assert.match(await panel.page.innerText('#body-1'), /Failed/);

    await panel.page.locator('tr.trial').first().click();
    await panel.page.locator('#viewer .body').waitFor();
    await panel.page.evaluate(() => { document.querySelector('#viewer .body').mark = 'the same'; });
    writeFileSync(path.join(dir, 'gate'), '');
    await daemon.until((m) => m.method === 'eval.complete' && m.params.runId === runId);
    await panel.send(runId);
    assert.match(await panel.page.innerText('#body-2'), /Passed/, 'the gate ended the last task');
    assert.equal(await panel.page.evaluate(() => document.querySelector('#viewer[open] .body')?.mark), 'the same', 'the open trial is not recreated');
    await panel.page.keyboard.press('Escape');
    await panel.page.click('[data-filter="failed"]');
    await panel.page.fill('#search', 'bad');
    await panel.send(runId);
    assert.equal(await panel.page.getAttribute('[data-filter="failed"]', 'aria-pressed'), 'true');
    assert.equal(await panel.page.inputValue('#search'), 'bad');
    assert.ok(await panel.page.locator('[data-action="failed"]').isVisible());
    assert.ok(!(await panel.page.locator('[data-action="cancel"]').isVisible()));
  },

  async 'choices of the reader survive a reload'(panel, { done }) {
    await panel.show(done);
    await panel.page.click('[data-filter="failed"]');
    await panel.page.waitForFunction(() => window.saved?.report.view.filter === 'failed');
    const saved = await panel.page.evaluate(() => window.saved);
    await panel.page.addInitScript((state) => { window.saved = state; }, saved);
    await panel.show(done);
    assert.equal(await panel.page.getAttribute('[data-filter="failed"]', 'aria-pressed'), 'true');
  },

  async 'a message leads to a trial, and another run is shown from its start'(panel, { done, before }) {
    await panel.show(done);
    await panel.post({ type: 'go', address: '#task/bad/trial/2' });
    await panel.page.locator('#viewer .body').waitFor();
    assert.match(await panel.page.innerText('#viewer-title'), /Trial 2\s+Failed/);
    await panel.send(before, { against: done });
    assert.ok(!(await panel.page.locator('#viewer').isVisible()));
    assert.match(await panel.page.innerText('#notes'), /Compared with run/);
    await panel.page.click('[data-action="alone"]');
    assert.deepEqual(panel.said.at(-1), { type: 'action', action: 'alone' });
    await panel.shot('panel-compare');
  },

  async 'light, dark and high contrast'(panel, { daemon, browser, done }) {
    for (const theme of Object.keys(THEMES)) {
      const other = await Panel.open(browser, daemon, theme);
      await other.show(done);
      const [background, scheme] = await other.page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.documentElement).colorScheme]);
      assert.equal(background, { 'vscode-dark': 'rgb(31, 31, 31)', 'vscode-light': 'rgb(255, 255, 255)', 'vscode-high-contrast': 'rgb(0, 0, 0)' }[theme]);
      assert.equal(scheme, theme === 'vscode-light' ? 'light' : 'dark');
      assert.ok(await other.page.locator('#theme').isHidden());
      await other.shot(`panel-${theme.slice(7)}`);
      panel.wrong.push(...other.wrong);
      await other.context.close();
    }
  },

  async 'ten thousand tasks'(panel, { daemon, notes }) {
    const long = path.join(dir, 'long');
    mkdirSync(long);
    const rows = Array.from({ length: 10_000 }, (_, i) => `case-${i},Answer ${i}`);
    writeFileSync(path.join(long, 'tasks.csv'), `id,prompt\n${rows.join('\n')}\n`);
    writeFileSync(path.join(long, 'eval.yaml'), 'name: long\nconfig: {executor: mock, parallel: true, workers: 4}\ntasks_from: tasks.csv\n');
    const runId = await daemon.run({ path: long });
    await panel.show(runId);
    const asked = performance.now();
    const { data } = await daemon.request('run.page', { runId });
    const got = performance.now();
    const took = await panel.page.evaluate((newer) => {
      const start = performance.now();
      window.dispatchEvent(new MessageEvent('message', { data: { type: 'show', data: newer, live: true } }));
      document.body.getBoundingClientRect(); // laid out
      return performance.now() - start;
    }, data);
    notes.push(`run.page ${Math.round(got - asked)} ms, ${Math.round(JSON.stringify(data).length / 1000)} KB; shown again in ${Math.round(took)} ms`);
    assert.match(await panel.page.innerText('#tasks'), /1–100 of 10,000/);
  },
};

const daemon = new Daemon(waza, { WAZA_STATE: path.join(dir, 'state') });
const browser = await launcher(found).launch({ executablePath: found.chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
if (screenshots) mkdirSync(screenshots, { recursive: true });
const suite = path.join(dir, 'eval.yaml');
writeFileSync(suite, SUITE);
writeFileSync(path.join(dir, 'gate'), '');
try {
  const stage = { daemon, browser, suite, before: await daemon.run({ path: suite }), done: await daemon.run({ path: suite }) };
  for (const [name, scenario] of Object.entries(scenarios)) {
    await report.add(name, async () => {
      const panel = await Panel.open(browser, daemon);
      try {
        const notes = [];
        await scenario(panel, { ...stage, notes });
        assert.deepEqual(panel.wrong, []);
        for (const note of notes) console.log(`    ${note}`);
      } finally {
        await panel.context.close();
      }
    });
  }
  process.exitCode = report.failed ? 1 : 0;
} finally {
  await browser.close();
  await daemon.end();
  rmSync(dir, { recursive: true, force: true });
}
