import assert from 'node:assert/strict';
import { eventually } from './harness.mjs';

const done = '[data-testid="done"]';
const main = 'main';

/** Starts a suite from the list and returns the id of the run. */
async function start(v, name) {
  await v.show('#/suites');
  await v.page.click(`button[aria-label="Start ${name}"]`);
  await v.page.waitForURL(/#\/jobs\/2/);
  return v.text('[data-testid="run-id"]');
}

const cells = (v, state) => v.page.locator(`.cell.s-${state}`).count();

export const scenarios = {
  async 'a live run'(v, w) {
    await v.page.goto(w.link);
    await v.connected();
    await start(v, 'gated');
    await v.reads(done, /0 of 8 trials/);
    await eventually(async () => (await cells(v, 'running')) === 2, 'two trials run');
    w.open('one');
    await v.reads(done, /2 of 8/);
    await eventually(async () => (await cells(v, 'passed')) === 2, 'two trials passed');
    w.open('bad');
    await v.shot('live');
    w.open('two');
    await v.reads('[data-testid="count-failed"]', /2 failed/);
    await v.reads('[data-testid="failures"]', /bad\s+trial 2/);
    w.open('all');
    await v.reads(done, /8 of 8/);
    await v.reads(main, /completed/);
    await v.reads(main, /pass rate 75 %/);
    await v.settled();
    const bar = await v.page.locator('.progress').evaluate((p) => p.firstElementChild.getBoundingClientRect().width / p.clientWidth);
    assert.ok(Math.abs(bar - 1) < 0.01, `the bar of a completed run is full, got ${bar}`);
    await v.shot('live-completed');
    await v.show('#/jobs');
    await v.reads('[data-testid="recent"]', /completed\s+gated\s+tool eval\s+8 of 8 cases/);
    await v.shot('jobs-recent');
  },

  async 'a run of another process'(v, w) {
    await v.signIn();
    const started = Date.now();
    const run = w.start('run', 'gated', '--dashboard');
    await v.reads('[data-testid="active"]', /gated\s+tool eval\s+▸ running/);
    const seen = Date.now() - started;
    w.open('one');
    await v.reads('[data-testid="active"]', /2 of 8 cases/);
    await v.shot('jobs');
    const link = await eventually(() => /^Dashboard: (\S+)$/m.exec(run.err)?.[1], 'the link');
    const other = await v.tab();
    await other.goto(link);
    await other.waitForSelector('.tasks .cell.s-passed');
    assert.match(other.url(), /#\/jobs\/2/);
    await other.close();
    w.open('all');
    await v.reads('[data-testid="recent"]', /completed\s+gated/);
    assert.equal(await run.over, 1, run.err);
    return `it is shown ${seen} ms after its process was started`;
  },

  async 'queued jobs'(v, w) {
    await v.signIn();
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push(await start(v, 'gated'));
    await v.reads('header p', /queued/);
    await v.show('#/jobs');
    await eventually(async () => (await v.page.locator('[data-testid="active"] .card').count()) === 3, 'three jobs');
    await v.reads(`[data-job="${ids[2]}"]`, /queued.*0 of 8 cases/s);
    await v.shot('queued');
    await v.page.click(`[data-job="${ids[0]}"] button`);
    await v.reads(`[data-testid="recent"] [data-job="${ids[0]}"]`, /cancelled/);
    await v.reads(`[data-job="${ids[2]}"]`, /running/);
    w.open('all');
    await v.reads(`[data-testid="recent"] [data-job="${ids[2]}"]`, /completed.*8 of 8/s);
  },

  async 'no server'(v, w) {
    v.lenient = true;
    await w.kill();
    w.open('all');
    const run = w.start('run', 'gated', '--dashboard');
    assert.equal(await run.over, 1);
    assert.match(run.err, /waza serve is not running; start it/);
  },

  async 'cancel, resume and run again'(v, w) {
    await v.signIn();
    const id = await start(v, 'gated');
    await eventually(async () => (await cells(v, 'running')) === 2, 'two trials run');
    w.open('one');
    await v.reads(done, /2 of 8/);
    await v.page.click('text=Cancel');
    await v.reads(main, /cancelled/);
    await v.page.waitForSelector('button:has-text("Resume")');
    await v.shot('cancelled');
    await v.page.click('button:has-text("Resume")');
    await v.reads('header p', /running/);
    await v.reads(done, /2 of 8/);
    w.open('all');
    await v.reads(done, /8 of 8/);
    assert.equal(await v.text('[data-testid="run-id"]'), id);
    await v.reads(main, /completed/);
    w.shut();
    await v.page.click('text=Run again');
    await eventually(async () => (await v.text('[data-testid="run-id"]')) !== id, 'another run');
    await v.reads(done, /0 of 8/);
    // Two tabs cancel at once.
    const other = await v.tab();
    await other.goto(v.page.url());
    // Find both buttons first: each click removes them from both tabs.
    const buttons = await Promise.all([other, v.page].map((tab) => tab.waitForSelector('button:has-text("Cancel")')));
    await Promise.all(buttons.map((button) => button.evaluate((b) => b.click())));
    await v.reads(main, /cancelled/);
  },

  async 'a question in progress'(v, w) {
    w.write('suites/asked/agent.sh', `until [ -e "$GATES/trial-$WAZA_TRIAL" ] || [ -e "$GATES/all" ]; do sleep 0.02; done
[ "$WAZA_MODEL" = good ] && echo good || echo no
`);
    const suite = w.write('suites/asked/eval.yaml', JSON.stringify({
      name: 'asked', config: { executor: 'command', sandbox: 'off', command: ['sh', 'agent.sh'], env: { GATES: w.gates }, parallel: true, workers: 2 },
      tasks: [{ id: 'one', prompt: 'x', graders: [{ name: 'good', type: 'text', config: { contains: ['good'] } }] }],
    }));
    await v.signIn(`#/suites/${encodeURIComponent(suite)}`);
    const field = (name) => v.page.getByLabel(name, { exact: true });
    await field('A').fill('no');
    await field('B').fill('good');
    await v.page.getByLabel(/^Better by/).fill('50');
    await v.page.getByLabel(/^Budget/).fill('0.5');
    await v.page.getByLabel('Models').fill('good');
    await v.page.click('form button[type="submit"]');
    await v.reads('body', /names both sides; omit the model/);
    await v.page.getByLabel('Models').fill('');
    await field('Unit of the budget').selectOption('trials');
    await v.page.getByLabel(/^Budget/).fill('40');
    await v.page.click('form button[type="submit"]');
    await v.page.waitForURL(/#\/jobs\/2/);
    const id = await v.text('[data-testid="run-id"]');
    await eventually(async () => (await cells(v, 'running')) === 2, 'a pair runs');
    await v.reads(done, /^0 trials$/);
    const deciding = '[data-testid="deciding"]';
    const first = /^1 of at most 100 pairs: \+100\.0 points \[-100\.0, \+100\.0\]; 2 of 40 trials$/;
    w.open('trial-1');
    await v.reads(deciding, first);
    await v.reads(done, /^2 trials$/);
    const bar = () => v.page.locator('.progress').first().getAttribute('aria-valuenow');
    await eventually(async () => (await bar()) === '5', 'the used share of the budget');
    await v.shot('question-running');
    await v.page.reload();
    await v.connected();
    await v.reads(deciding, first);
    const other = await v.tab();
    await other.goto(`${w.origin}/#/jobs`);
    await other.waitForSelector('[data-testid="active"] .card');
    assert.match(await other.innerText('[data-testid="active"]'), /asked: 1 of at most 100 pairs: /);
    await other.close();
    w.open('all');
    const answer = await v.reads('[data-testid="decision"]', /^Good is better than no: |^good is better than no: /);
    assert.equal(await v.page.locator(deciding).count(), 0);
    await v.reads('[data-testid="count-skipped"]', /not needed/);
    await eventually(async () => (await bar()) === '100', 'a full bar');
    await v.shot('question-answered');
    // The same question again has the same answer, from the same trials.
    await v.page.click('text=Run again');
    await eventually(async () => (await v.text('[data-testid="run-id"]')) !== id, 'another run');
    const repeated = await v.reads('[data-testid="decision"]', /trials reused$/);
    assert.ok(repeated.startsWith(answer), `${repeated} repeats ${answer}`);
  },

  async 'the server is killed in mid-run'(v, w) {
    v.lenient = true;
    await v.signIn();
    const id = await start(v, 'gated');
    w.open('one');
    await v.reads(done, /2 of 8/);
    const jobs = await v.tab();
    await jobs.goto(`${w.origin}/#/jobs`);
    await jobs.waitForSelector('[data-testid="active"] .card');
    const seen = [];
    await v.page.exposeFunction('note', (text) => seen.push(text));
    await v.page.evaluate(() => new MutationObserver(() => window.note(document.querySelector('[data-testid="done"]')?.innerText ?? 'gone')).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true }));
    await w.kill();
    await v.page.waitForSelector('[data-testid="standing"].off');
    await v.shot('reconnecting');
    const started = Date.now();
    await w.serve();
    await v.connected();
    const again = Date.now() - started;
    await v.connected(jobs);
    await v.reads(done, /2 of 8/);
    await eventually(async () => (await cells(v, 'running')) === 2, 'two trials run again');
    await jobs.waitForSelector(`[data-testid="active"] [data-job="${id}"]`);
    assert.equal(await jobs.locator('[data-job]').count(), 1, 'no ghosts');
    assert.match(await jobs.innerText('[data-testid="active"]'), /2 of 8 cases/);
    w.open('all');
    await v.reads(done, /8 of 8/);
    await v.reads('header p', /completed/);
    assert.equal(await v.text('[data-testid="run-id"]'), id);
    await jobs.waitForSelector(`[data-testid="recent"] [data-job="${id}"]`);
    assert.equal(await jobs.locator(`[data-job="${id}"]`).count(), 1);
    assert.equal(await cells(v, 'passed'), 6);
    assert.equal(await cells(v, 'failed'), 2);
    assert.deepEqual([...new Set(seen)].filter((t) => !/^[2-8] of 8 trials$/.test(t)), [], 'counts never go back');
    return `connected ${again} ms after the server restarted`;
  },

  async 'agents'(v, w) {
    await v.signIn('#/agents');
    await v.reads(main, /No agent is connected/);
    const at = /door=agents address=(\S+)/.exec(w.server.err)[1];
    w.start('agent', '--exec', 'cat', '--connect', `ws://${at}`);
    await v.reads('[data-testid="agents"]', /ready.*0 of 1 evaluations in progress/s);
    await v.shot('agents');
  },
};
