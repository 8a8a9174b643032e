// A daemon for a test: requests, notifications, and its end.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class Daemon {
  constructor(waza, env) {
    this.process = spawn(waza, ['jsonrpc'], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'ignore'] });
    this.waiting = new Map();
    this.last = 0;
    this.heard = [];
    this.listeners = new Set();
    createInterface({ input: this.process.stdout }).on('line', (line) => this.received(JSON.parse(line)));
  }

  received(message) {
    if (message.method) {
      this.heard.push(message);
      for (const listener of this.listeners) listener(message);
      return;
    }
    const { answer, refuse } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) refuse(new Error(message.error.message));
    else answer(message.result);
  }

  request(method, params) {
    const id = ++this.last;
    return new Promise((answer, refuse) => {
      this.waiting.set(id, { answer, refuse });
      this.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  // until waits for a notification, which may already have arrived.
  until(matches) {
    return new Promise((done) => {
      const found = this.heard.find(matches);
      if (found) return done(found);
      const listener = (message) => {
        if (!matches(message)) return;
        this.listeners.delete(listener);
        done(message);
      };
      return this.listeners.add(listener);
    });
  }

  // run starts a suite; with wait it also waits for the end.
  async run(params, wait = true) {
    const { runId } = await this.request('eval.run', params);
    if (wait) await this.until((m) => m.method === 'eval.complete' && m.params.runId === runId);
    return runId;
  }

  async end() {
    const gone = new Promise((done) => this.process.once('exit', done));
    this.process.stdin.end();
    await gone;
  }
}
