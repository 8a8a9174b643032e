// One window of the editor, used like a person does: keys, the command palette, clicks.

import { writeFileSync } from 'node:fs';
import { launcher, still } from './tools.mjs';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// Long enough for a loaded machine with two slow cores.
export const PATIENCE = 45_000;

// launch starts Chromium; close of the result ends it with all its processes.
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

  // ready waits until the parts of the window are visible.
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

  // command runs a command of the palette; name is its full title in the palette.
  async command(name) {
    const input = await this.quickInput('F1');
    await input.fill(`>${name}`);
    const row = this.locator('.quick-input-list .monaco-list-row').filter({ has: this.page.getByText(name, { exact: true }) });
    await row.first().click();
    await input.waitFor({ state: 'hidden' }).catch(() => {}); // some commands ask for more input
  }

  async quickInput(key) {
    const input = this.locator('.quick-input-widget .quick-input-box input').first();
    if (key) await this.press(key);
    await input.waitFor();
    return input;
  }

  // pick chooses a row of the open list.
  async pick(text) {
    await this.locator('.quick-input-list .monaco-list-row', { hasText: text }).first().click();
  }

  // openFile opens a file by the end of its path and returns its editor.
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

  // goTo moves the caret of the active editor to a line and column, both from 1.
  async goTo(line, column = 1) {
    const input = await this.quickInput('Control+G');
    await input.fill(`:${line}:${column}`);
    await this.press('Enter');
    await input.waitFor({ state: 'hidden' });
  }

  // clickUntil clicks until something is visible. Lenses are redrawn while they are
  // resolved, which can lose a click. A person would click again.
  async clickUntil(what, seen) {
    for (let tries = 4; tries > 0; tries--) {
      await what.click();
      const came = await seen.first().waitFor({ timeout: 4000 }).then(() => true, () => false);
      if (came) return;
    }
    throw new Error(`clicks on ${what} had no effect`);
  }

  // webview returns the page inside the active webview once it contains the selector.
  async webview(selector) {
    const frame = this.page.frameLocator('iframe.webview.ready').last().frameLocator('iframe#active-frame');
    await frame.locator(selector).first().waitFor();
    return frame;
  }

  // clear closes all editors and the panel below them.
  async clear() {
    await this.command('View: Close All Editors');
    const panel = this.locator('.part.panel');
    if (!(await panel.isVisible())) return;
    await this.press('Control+J');
    await panel.waitFor({ state: 'hidden' });
  }

  // settled waits until nothing in the window and its views fades or moves, except endless
  // animations.
  async settled() {
    await this.page.evaluate(still);
    for (const frame of this.page.frames().slice(1)) {
      const element = await frame.frameElement().catch(() => null); // null if the view was closed
      if (await element?.isVisible()) await frame.evaluate(still).catch(() => {}); // or loads again
    }
  }

  // shot takes a picture, and writes the words of the extension's own views beside it.
  async shot(file) {
    await this.settled();
    await this.page.screenshot({ path: file, animations: 'disabled' });
    const texts = [];
    for (const frame of this.page.frames().slice(1)) {
      const element = await frame.frameElement().catch(() => null);
      if ((await element?.getAttribute('id')) !== 'active-frame' || !(await element.isVisible())) continue;
      texts.push(await frame.evaluate(() => document.body?.innerText ?? '').catch(() => ''));
    }
    writeFileSync(file.replace(/png$/, 'txt'), texts.join('\n'));
  }

  // text returns the visible text of the window, for a scenario that failed.
  async text() {
    const parts = await this.page.evaluate(() => document.body.innerText).catch((e) => String(e));
    return parts.replace(/\n{2,}/g, '\n');
  }
}
