// The Test Explorer, used like a person does.

import { until } from './processes.mjs';

const icons = {
  Passed: 'testing-passed-icon',
  Failed: 'testing-failed-icon',
  Errored: 'testing-error-icon',
  Skipped: 'testing-skipped-icon',
  Queued: 'testing-queued-icon',
  Running: 'loading',
};

export class Explorer {
  constructor(window) {
    this.window = window;
  }

  // open shows the Test Explorer. Its place in the activity bar appears with the
  // extension.
  async open() {
    const tab = this.window.locator('.activitybar .action-item', { has: this.window.page.locator('a[aria-label^="Testing"]') }).first();
    await tab.waitFor();
    if (!(await this.window.locator('.test-explorer').isVisible())) await tab.click();
    await this.window.locator('.test-explorer .monaco-list-row').first().waitFor();
  }

  // rows finds items by the start of their labels. state, if given, is the state that
  // their icon must show, because the label for screen readers is updated later.
  rows(label, state = '') {
    const { page } = this.window;
    const labelStart = new RegExp(`^${label.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`);
    const rows = page.locator('.test-explorer .monaco-list-row', { has: page.locator('.label', { hasText: labelStart }) });
    return state ? rows.filter({ has: page.locator(`.computed-state.codicon-${icons[state]}`) }) : rows;
  }

  // see waits for an item and for its state.
  see(label, state) {
    return this.rows(label, state).first().waitFor();
  }

  // expand opens an item and waits until it has children. A changing list can miss the
  // click, so the click is repeated.
  async expand(label) {
    const row = this.rows(label).first();
    await row.waitFor();
    const is = async () => (await row.getAttribute('aria-expanded', { timeout: 2000 }).catch(() => '')) === 'true';
    await until(`${label} opened`, 45, async () => {
      if (!(await is())) await row.locator('.monaco-tl-twistie').click({ timeout: 2000 }).catch(() => {});
      return is();
    });
  }

  async collapse(label) {
    const row = this.rows(label).first();
    if ((await row.getAttribute('aria-expanded')) === 'true') await row.locator('.monaco-tl-twistie').click();
  }

  // act clicks one of the buttons that an item shows under the pointer.
  async act(label, button) {
    const row = this.rows(label).first();
    const action = row.locator(`.action-label[aria-label^="${button}"]`);
    await until(`the button ${button} of ${label}`, 30, async () => {
      await this.window.page.mouse.move(0, 0); // if the list moved under the pointer, buttons appear only after the pointer moves
      await row.hover();
      return action.click({ timeout: 1000 }).then(() => true, () => false);
    });
  }

  run(label) {
    return this.act(label, 'Run Test');
  }

  count() {
    return this.window.locator('.test-explorer .monaco-list-row').count();
  }
}
