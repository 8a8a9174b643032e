// The Test Explorer, as a person sees and uses it.

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

  // open shows it. Its place in the activity bar appears with the extension.
  async open() {
    const tab = this.window.locator('.activitybar .action-item', { has: this.window.page.locator('a[aria-label^="Testing"]') }).first();
    await tab.waitFor();
    if (!(await this.window.locator('.test-explorer').isVisible())) await tab.click();
    await this.window.locator('.test-explorer .monaco-list-row').first().waitFor();
  }

  // rows are items by what their labels begin with. state, of those in icons, is what
  // they must have come to, as their icon shows: what is read out comes later.
  rows(label, state = '') {
    const { page } = this.window;
    const begins = new RegExp(`^${label.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`);
    const rows = page.locator('.test-explorer .monaco-list-row', { has: page.locator('.label', { hasText: begins }) });
    return state ? rows.filter({ has: page.locator(`.computed-state.codicon-${icons[state]}`) }) : rows;
  }

  // see waits for an item, and for its state.
  see(label, state) {
    return this.rows(label, state).first().waitFor();
  }

  // expand opens an item and waits until something is below it. A list that changes
  // may not have the click, so it is done again.
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
      await this.window.page.mouse.move(0, 0); // a list that moved under the pointer shows no buttons before it moves, too
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
