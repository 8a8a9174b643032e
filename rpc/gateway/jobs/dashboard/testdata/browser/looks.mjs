import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { client, extension } from './doors.mjs';
import { eventually, modules } from './harness.mjs';

const axe = fs.readFileSync(path.join(modules, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');

/** Returns the findings of axe-core on a page. */
async function findings(v) {
  await v.page.evaluate(axe); // the page's policy does not apply to scripts of the test
  const found = await v.page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
  return found.violations.map((f) => `${f.id}: ${f.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 120)} ${n.any.map((a) => a.message).join('; ').slice(0, 200)}`).join(' | ')}`);
}

/** Prepares contents for each page, and returns the pages. */
async function pages(v, w) {
  for (const trials of [3, 4, 5]) await w.record('quick', '--trials', String(trials));
  await v.signIn();
  w.open('one', 'bad');
  const run = w.start('run', 'gated');
  w.start('agent', '--exec', 'cat', '--connect', `ws://${/door=agents address=(\S+)/.exec(w.server.err)[1]}`);
  w.start('worker', '--fleet', 'embedded', '--name', 'hand', '--labels', 'gpu');
  await client(w, 'notebook', 'I take notes.', () => [{ type: 'ack', payload: {} }]);
  await w.waza('send', 'notebook: buy milk');
  const reader = await extension(w);
  reader.say({ type: 'command', id: crypto.randomUUID(), timestamp: Date.now(), payload: { text: 'read the news', assistant_id: reader.assistant } });
  await v.reads('[data-testid="active"]', /2 of 8 cases/);
  const id = await v.page.getAttribute('[data-testid="active"] .card', 'data-job');
  return {
    run,
    all: {
      jobs: ['#/jobs', '[data-testid="active"] .card'],
      live: [`#/jobs/${id}`, '.cell.s-passed'],
      suites: ['#/suites', '[data-testid="suites"] .card'],
      suite: [`#/suites/${encodeURIComponent(path.join(w.suites, 'quick', 'eval.yaml'))}`, '.plot canvas'],
      runs: ['#/runs', '.runs .vrow'],
      agents: ['#/agents', '[data-testid="agents"] .card'],
      assistants: ['#/assistants', '[data-testid="assistants"] .card'],
      messages: ['#/messages', '[data-testid="messages"] .card'],
      fleet: ['#/fleet', '[data-testid="fleet-workers"] .card'],
      nowhere: ['#/nowhere', 'h1:has-text("Page not found")'],
    },
  };
}

const looks = (scheme) => {
  const scenario = async (v, w) => {
    const { all } = await pages(v, w);
    const wrong = [];
    for (const [name, [hash, ready]] of Object.entries(all)) {
      await v.show(hash);
      await v.page.waitForSelector(ready);
      await v.page.waitForFunction(() => !/reading \d/.test(document.body.innerText));
      wrong.push(...(await findings(v)).map((f) => `${name}: ${f}`));
      await v.shot(`${scheme}-${name}`);
    }
    await v.page.keyboard.press('?');
    wrong.push(...(await findings(v)).map((f) => `keys: ${f}`));
    await v.shot(`${scheme}-keys`);
    await v.page.keyboard.press('Escape');
    await v.page.click('text=Sign out');
    await v.page.waitForSelector('main.login');
    wrong.push(...(await findings(v)).map((f) => `login: ${f}`));
    await v.shot(`${scheme}-login`);
    assert.deepEqual(wrong, []);
  };
  scenario.options = { colorScheme: scheme };
  return scenario;
};

const narrow = async (v, w) => {
  const { all } = await pages(v, w);
  const wide = [];
  for (const [name, [hash, ready]] of Object.entries(all)) {
    await v.show(hash);
    await v.page.waitForSelector(ready);
    await v.page.waitForFunction(() => !/reading \d/.test(document.body.innerText));
    const over = await v.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) wide.push(`${name} is ${over} px too wide`);
    await v.shot(`narrow-${name}`);
  }
  assert.deepEqual(wide, []);
};
narrow.options = { viewport: { width: 400, height: 800 }, reducedMotion: 'reduce' };

export const scenarios = {
  'light, without findings of axe-core': looks('light'),
  'dark, without findings of axe-core': looks('dark'),
  '400 px': narrow,

  async 'the switch of light and dark'(v) {
    await v.signIn();
    const theme = () => v.page.evaluate(() => document.documentElement.dataset.theme);
    assert.equal(await theme(), 'light');
    await v.page.keyboard.press('t');
    await v.page.keyboard.press('t');
    assert.equal(await theme(), 'dark');
    await v.page.reload();
    await v.connected();
    assert.equal(await theme(), 'dark', 'it is kept');
  },

  async 'keyboard only'(v, w) {
    await w.record('quick');
    await w.record('quick');
    await v.signIn();
    const { page } = v;
    const press = async (...keys) => {
      for (const k of keys) await page.keyboard.press(k);
    };
    const focused = () => page.evaluate(() => document.activeElement.innerText || document.activeElement.getAttribute('aria-label') || document.activeElement.tagName);
    await press('Tab');
    assert.equal(await focused(), 'Skip to content');
    await v.shot('keyboard-skip');
    await press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    await press('?');
    await page.waitForSelector('dialog[open]');
    await press('Escape');
    await page.waitForSelector('dialog:not([open])', { state: 'attached' });

    // Start a suite.
    await press('s');
    await page.waitForSelector('[data-testid="suites"] .card');
    await press('/');
    await page.keyboard.type('gated');
    await eventually(async () => (await page.locator('[data-testid="suites"] .card').count()) === 1, 'one suite');
    await press('Tab', 'Tab');
    assert.equal(await focused(), 'Start');
    await press('Enter');
    await page.waitForSelector('.cell.s-running');

    // Walk the grid.
    w.open('one', 'bad');
    await v.reads('[data-testid="done"]', /2 of 8/);
    await press('g', 'ArrowDown', 'ArrowRight');
    await v.reads('.detail', /one, trial 2 of 2: passed/);
    await press('ArrowDown');
    await v.reads('.detail', /two, trial 2 of 2/);
    assert.ok(await page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.matches('.cell.active')));
    await v.shot('keyboard-grid');
    await press('End', 'Home');
    await v.reads('.detail', /one, trial/);

    // Cancel.
    await page.focus('main');
    for (let i = 0; i < 10 && (await focused()) !== 'Cancel'; i++) await press('Tab');
    await press('Enter');
    await v.reads('main', /cancelled/);

    // Compare.
    await press('r');
    await page.waitForSelector('.runs .vrow');
    await press('g', 'ArrowDown', 'ArrowDown', ' ', 'ArrowDown', ' ');
    await page.waitForSelector('text=Compare 2 runs');
    await v.shot('keyboard-runs');
    await press('Shift+Tab', 'Shift+Tab');
    assert.equal(await focused(), 'Compare 2 runs');
    await press('Enter');
    await page.waitForURL(/\/compare\?/);
    await page.waitForSelector('#table tbody tr');
  },
};
