// A server, suites and runs for the scenarios, and the windows of a browser.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

export const [modules, chromium, waza, screenshots] = process.argv.slice(2);
const { chromium: playwright } = createRequire(path.join(modules, 'package.json'))('playwright-core');

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
export const browser = await playwright.launch({ executablePath: chromium, args: FLAGS });
const PATIENCE = 60_000;

/** Waits until f returns a value, and returns it. */
export async function eventually(f, what) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const got = await f();
    if (got) return got;
    if (Date.now() > end) throw new Error(`timeout: ${what ?? f}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

/** Returns a port that no client gets by chance while the server restarts. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const free = await new Promise((done) => {
      const server = net.createServer();
      server.once('error', () => done(false));
      server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
    });
    if (free) return port;
  }
}

const CASTAGNOLI = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let i = 0; i < 8; i++) n = n & 1 ? (n >>> 1) ^ 0x82f63b78 : n >>> 1;
  return n;
});

/** Returns a text of a run's record with its checksums. */
function seal(text) {
  const end = /,"crc":"[0-9a-f]{8}"\}\s*$/;
  const one = (sealed) => {
    // Nobody but waza can write keyed digests, so the copies have none.
    const part = sealed.replace(/(,"recordKey":"[0-9a-f]+")?(,"lines":\d+,"bytes":\d+,"last":"[0-9a-f]*")?,"mac":"[0-9a-f]+"(?=,"crc":"[0-9a-f]{8}"\}\s*$)/, '');
    const at = part.search(end);
    if (at < 0) return part;
    let sum = ~0;
    for (const b of Buffer.from(part.slice(0, at))) sum = CASTAGNOLI[(sum ^ b) & 255] ^ (sum >>> 8);
    return part.slice(0, at) + part.slice(at).replace(/[0-9a-f]{8}/, ((~sum) >>> 0).toString(16).padStart(8, '0'));
  };
  return /^\{\n/.test(text) ? one(text) : text.split('\n').map(one).join('\n');
}

const AGENT = `read -r word
until [ -e "$GATES/$word" ] || [ -e "$GATES/all" ]; do sleep 0.02; done
case $word in bad*) echo no;; *) echo good;; esac
`;

/** World is a state directory, suites, and a server that can be killed. */
export class World {
  constructor() {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'waza-dashboard-'));
    this.suites = path.join(this.dir, 'suites');
    this.gates = path.join(this.dir, 'gates');
    this.state = path.join(this.dir, 'state');
    for (const d of [this.suites, this.gates, path.join(this.dir, 'home')]) fs.mkdirSync(d, { recursive: true });
    this.env = { ...process.env, WAZA_STATE: this.state, HOME: path.join(this.dir, 'home'), BROWSER: `sh ${this.write('browser.sh', `printf %s "$1" >"${this.dir}/link.new"\nmv "${this.dir}/link.new" "${this.dir}/link"\n`)}` };
    this.children = new Set();
    this.gated('gated', { tasks: ['one', 'two', 'bad', 'four'], trials: 2, workers: 2 });
    this.quick('quick', 4);
  }

  write(name, text) {
    const file = path.join(this.dir, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  /** Creates a suite with an agent that waits until gates open. */
  gated(name, { tasks, trials, workers }) {
    this.write(`suites/${name}/agent.sh`, AGENT);
    return this.write(`suites/${name}/eval.yaml`, JSON.stringify({
      name, description: 'Waits until its gates are opened.',
      config: { executor: 'command', sandbox: 'off', command: ['sh', 'agent.sh'], prompt_as: 'stdin', env: { GATES: this.gates }, trials_per_task: trials, parallel: true, workers },
      graders: [{ name: 'good', type: 'text', config: { contains: ['good'] } }],
      tasks: tasks.map((id) => ({ id, prompt: id })),
    }));
  }

  /** Creates a suite that ends at once, with some failing tasks. */
  quick(name, count, more = {}, latency = { min: 3, max: 20 }) {
    this.write(`suites/${name}/tasks.csv`, `id,prompt\n${Array.from({ length: count }, (_, i) => `case-${String(i + 1).padStart(5, '0')},Answer number ${i + 1}`).join('\n')}\n`);
    return this.write(`suites/${name}/eval.yaml`, JSON.stringify({
      name, description: 'Answers at once.',
      config: { parallel: true, workers: 4, trials_per_task: 3, executor: 'mock', mock: { seed: 3, latency_ms: latency, replies: [
        { match: '[37]$', output: 'I do not know.', usage: { input_tokens: 40, output_tokens: 4, cost_usd: 0.002 } },
        { match: '', output: 'It is {{task_id}}.', usage: { input_tokens: 40, output_tokens: 9, cost_usd: 0.003 } },
      ] }, ...more },
      graders: [{ name: 'knows', type: 'text', config: { contains: ['it is'] } }],
      tasks_from: 'tasks.csv',
    }));
  }

  open(...gates) {
    for (const g of gates) fs.writeFileSync(path.join(this.gates, g), '');
  }

  shut() {
    for (const g of fs.readdirSync(this.gates)) fs.unlinkSync(path.join(this.gates, g));
  }

  /** Starts a waza process. Its output is in out and err. */
  start(...args) {
    const child = spawn(waza, args, { cwd: this.suites, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.out = child.err = '';
    child.stdout.on('data', (b) => (child.out += b));
    child.stderr.on('data', (b) => (child.err += b));
    child.over = new Promise((done) => child.on('exit', (code, signal) => (this.children.delete(child), done(code ?? signal))));
    this.children.add(child);
    return child;
  }

  /** Runs a waza process to its end and returns its output. */
  async waza(...args) {
    const child = this.start(...args);
    await child.over;
    return child.out;
  }

  /** Starts the server, and stores its link in this.link. */
  async serve() {
    this.port ??= await freePort();
    this.origin = `http://127.0.0.1:${this.port}`;
    fs.rmSync(path.join(this.dir, 'link'), { force: true });
    this.server = this.start('serve', '--jobs', `127.0.0.1:${this.port}`, '--agents', '127.0.0.1:0', '--browser', '127.0.0.1:0', '--router', '127.0.0.1:0', '--open');
    this.link = await eventually(() => {
      assert.ok(this.children.has(this.server), this.server.err);
      try {
        return fs.readFileSync(path.join(this.dir, 'link'), 'utf8');
      } catch {
        return '';
      }
    }, 'the link');
  }

  async kill() {
    this.server.kill('SIGKILL');
    await this.server.over;
  }

  async end() {
    this.open('all');
    for (const c of this.children) c.kill('SIGKILL');
    await Promise.all([...this.children].map((c) => c.over));
    fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Returns a pair of tokens of the owner. */
  async tokens(...args) {
    return JSON.parse(await this.waza('token', 'create', '--json', ...args));
  }

  /** Records a run and returns its id. */
  async record(suite, ...args) {
    const line = (await this.waza('run', suite, '--json', ...args)).trim();
    return JSON.parse(line).runId;
  }

  /** Changes a byte in the journal of a run. */
  damage(runId) {
    const file = path.join(this.state, 'runs', runId, 'journal.jsonl');
    const bytes = fs.readFileSync(file);
    bytes[bytes.length >> 1] ^= 1;
    fs.writeFileSync(file, bytes);
  }

  /** Copies a recorded run up to a number of runs, one minute apart, and trusts the copies. */
  async multiply(runId, count) {
    const from = path.join(this.state, 'runs', runId);
    const texts = fs.readdirSync(from).filter((f) => !f.endsWith('.gz')).map((f) => [f, fs.readFileSync(path.join(from, f), 'utf8')]);
    const started = Date.parse(/"createdAt": ?"([^"]+)"/.exec(texts.find(([f]) => f === 'run.json')[1])[1]);
    for (let i = 1; i <= count; i++) {
      const shift = -i * 60_000;
      const at = new Date(started + shift).toISOString().replace(/[-:]/g, '').replace('T', '-').replace('Z', '').replace('.', '.');
      const id = `${at}-${runId.split('-')[2].slice(0, 4)}${String(i).padStart(6, 'a').replace(/\d/g, (d) => 'abcdefghij'[d])}`;
      const to = path.join(this.state, 'runs', id);
      fs.mkdirSync(to);
      for (const [f, text] of texts) {
        fs.writeFileSync(path.join(to, f), seal(text.replaceAll(runId, id).replace(/20\d\d-\d\d-\d\dT[\d:]+(\.\d+)?Z/g, (t) => new Date(Date.parse(t) + shift).toISOString())));
      }
    }
    await this.waza('runs', 'trust', '--all');
  }
}

/** Visit is a separate window, and collects its errors. */
export class Visit {
  static async start(world, options = {}) {
    const v = new Visit();
    v.world = world;
    v.wrong = [];
    v.context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: 'light', ...options });
    v.page = await v.tab();
    return v;
  }

  /** Opens another tab of the window. */
  async tab() {
    const page = await this.context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('console', (m) => {
      // Chromium logs each failed request; scenarios list the ones they cause.
      if ((m.type() === 'error' || m.type() === 'warning') && !(this.lenient && /Failed to load resource|WebSocket connection/.test(m.text()))) this.wrong.push(`console: ${m.text()}`);
    });
    page.on('pageerror', (e) => this.wrong.push(`error: ${e.message}`));
    page.on('dialog', (d) => (this.wrong.push(`dialog: ${d.message()}`), d.dismiss()));
    const own = (url) => url.startsWith(`${this.world.origin}/`) || url.startsWith(`${this.world.origin.replace('http', 'ws')}/`) || url.startsWith('data:');
    page.on('request', (r) => own(r.url()) || this.wrong.push(`request: ${r.url().slice(0, 80)}`));
    page.on('websocket', (w) => own(w.url()) || this.wrong.push(`websocket: ${w.url().slice(0, 80)}`));
    await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error(`CSP: ${e.violatedDirective} ${e.blockedURI}`)));
    return page;
  }

  /** Signs in with tokens of the owner, and opens a page. */
  async signIn(hash = '', page = this.page) {
    const t = await this.world.tokens();
    await page.addInitScript((t) => localStorage.setItem('waza.tokens', t), JSON.stringify({ access: t.access_token, refresh: t.refresh_token }));
    await page.goto(`${this.world.origin}/${hash}`);
    await this.connected(page);
  }

  connected(page = this.page) {
    return page.waitForSelector('[data-testid="standing"].on');
  }

  show(hash) {
    return this.page.evaluate((h) => (location.hash = h), hash);
  }

  text(selector) {
    return this.page.innerText(selector);
  }

  /** Waits until the text of an element matches. */
  async reads(selector, want) {
    let got;
    await eventually(async () => {
      got = await this.page.locator(selector).first().innerText({ timeout: 1000 }).catch(() => '');
      return want.test(got);
    }, `${selector} to be like ${want}`).catch((e) => {
      throw new Error(`${e.message}; got: ${got}`);
    });
    return got;
  }

  /** Waits until every progress bar is as wide as its value, and nothing fades or moves. */
  settled() {
    const still = () =>
      document.getAnimations().every((a) => a.playState !== 'running' || a.effect.getComputedTiming().endTime === Infinity) &&
      [...document.querySelectorAll('.progress')].every((p) => Math.abs(p.firstElementChild.getBoundingClientRect().width - (p.clientWidth * p.ariaValueNow) / 100) < 1);
    return eventually(() => this.page.evaluate(still), 'a settled page');
  }

  async shot(name) {
    await this.settled();
    return this.page.screenshot({ path: path.join(screenshots, `${name}.png`), animations: 'disabled' });
  }
}
