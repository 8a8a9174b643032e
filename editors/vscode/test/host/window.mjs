// One window of the editor, used as a person would: keys, the command palette, clicks.

import { launcher } from './tools.mjs';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// Patience is for a loaded machine with two slow cores.
export const PATIENCE = 45_000;

// launch starts Chromium; close of what it gives ends it with all its processes.
export function launch(tools) {
  return launcher(tools).launch({ executablePath: tools.chromium, args: FLAGS });
}

export class Window {
  static async open(browser, url) {
    const w = new Window();
    w.context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    w.page = await w.context.newPage();
    w.page.setDefaultTimeout(PATIENCE);
    w.page.on('dialog', (d) => d.accept().catch(() => {})); // "leave the page?"
    w.log = [];
    w.page.on('console', (m) => m.type() === 'error' && w.log.push(m.text().slice(0, 500)));
    await w.page.goto(url);
    await w.ready();
    return w;
  }

  // ready waits until the window has its parts.
  async ready() {
    await this.page.locator('.monaco-workbench .part.statusbar .statusbar-item').first().waitFor();
    await this.page.locator('.monaco-workbench .part.editor').waitFor();
  }

  async reload() {
    await this.page.reload();
    await this.ready();
  }

  close() {
    return this.context.close();
  }

  locator(selector, options) {
    return this.page.locator(selector, options);
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
  }

  type(text) {
    return this.page.keyboard.type(text);
  }

  // command runs one from the palette; name is all that the palette shows of it.
  async command(name) {
    const input = await this.quickInput('F1');
    await input.fill(`>${name}`);
    const row = this.locator('.quick-input-list .monaco-list-row').filter({ has: this.page.getByText(name, { exact: true }) });
    await row.first().click();
    await input.waitFor({ state: 'hidden' }).catch(() => {}); // some commands ask on
  }

  async quickInput(key) {
    const input = this.locator('.quick-input-widget .quick-input-box input').first();
    if (key) await this.press(key);
    await input.waitFor();
    return input;
  }

  // pick chooses a row of the list that is open now.
  async pick(text) {
    await this.locator('.quick-input-list .monaco-list-row', { hasText: text }).first().click();
  }

  // openFile opens one by the end of its path and gives its editor.
  async openFile(name, line) {
    const parts = name.split('/');
    const input = await this.quickInput('Control+P');
    await input.fill(line ? `${name}:${line}` : name);
    const rows = this.locator('.quick-input-list .monaco-list-row', { hasText: parts.at(-1) });
    await rows.filter({ hasText: parts.slice(0, -1).join('/') }).first().click();
    const editor = this.locator(`.editor-group-container.active .monaco-editor[data-uri$="/${name}"]`).first();
    await editor.locator('.view-line').first().waitFor();
    return editor;
  }

  // goTo puts the caret of the active editor to a line and column, both from 1.
  async goTo(line, column = 1) {
    const input = await this.quickInput('Control+G');
    await input.fill(`:${line}:${column}`);
    await this.press('Enter');
    await input.waitFor({ state: 'hidden' });
  }

  // clickUntil clicks until something is seen: lenses are drawn anew while they are
  // resolved, and a click that comes just then is lost. A person clicks again.
  async clickUntil(what, seen) {
    for (let tries = 4; tries > 0; tries--) {
      await what.click();
      const came = await seen.first().waitFor({ timeout: 4000 }).then(() => true, () => false);
      if (came) return;
    }
    throw new Error(`nothing came of clicks on ${what}`);
  }

  // webview gives the page inside the active webview once it has what selector wants.
  async webview(selector) {
    const frame = this.page.frameLocator('iframe.webview.ready').last().frameLocator('iframe#active-frame');
    await frame.locator(selector).first().waitFor();
    return frame;
  }

  // clear closes all editors, and the panel below them.
  async clear() {
    await this.command('View: Close All Editors');
    const panel = this.locator('.part.panel');
    if (!(await panel.isVisible())) return;
    await this.press('Control+J');
    await panel.waitFor({ state: 'hidden' });
  }

  async shot(file) {
    await this.page.screenshot({ path: file });
  }

  // text is what a person reads in the window now, for a scenario that failed.
  async text() {
    const parts = await this.page.evaluate(() => document.body.innerText).catch((e) => String(e));
    return parts.replace(/\n{2,}/g, '\n');
  }
}
