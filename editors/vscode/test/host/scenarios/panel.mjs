// Results of runs: results panel, transcripts, past runs, code lenses.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

export const panel = [
  {
    name: 'code lenses show the last result',
    async run(s) {
      const { window } = s;
      const editor = await window.openFile('code-explainer/eval.yaml', 1);
      const lens = editor.locator('.codelens-decoration');
      await lens.getByText(/2\/4/).first().waitFor();
      await lens.getByText('Run', { exact: false }).first().waitFor();
      await s.shot('code-lens');
      const task = await window.openFile('tasks/complexity.yaml', 1);
      await task.locator('.codelens-decoration').getByText(/2\/3/).first().waitFor();
      await s.shot('code-lens-task');
    },
  },
  {
    name: 'the results panel shows table and transcript',
    async run(s) {
      const { window } = s;
      await window.clear();
      const editor = await window.openFile('code-explainer/eval.yaml', 1);
      const lens = editor.locator('.codelens-decoration').getByText(/2\/4/).first();
      await window.clickUntil(lens, window.locator('.tab', { hasText: 'code-explainer' }).and(window.locator(':not([data-resource-name="eval.yaml"])')));
      const page = await window.webview('#table tbody tr');
      assert.equal(await page.locator('#table .task').count(), 4);
      await s.shot('panel');
      await s.light('panel');
      await page.locator('#table .task', { hasText: 'repair' }).first().click();
      await page.locator('[data-trial-row]').first().click();
      await page.locator('#viewer[open] .body').waitFor();
      await page.locator('#viewer').getByText('read_file').first().waitFor();
      await s.shot('transcript');
      await page.locator('#viewer').press('Escape');
      await page.locator('#viewer[open]').waitFor({ state: 'detached' });
    },
  },
  {
    name: 'past runs are listed',
    async run(s) {
      const { window } = s;
      await window.command('waza: Focus on Runs View');
      const rows = window.locator('.pane-body .monaco-list-row');
      await rows.filter({ hasText: 'code-explainer' }).first().waitFor();
      await rows.filter({ hasText: 'refactor' }).first().waitFor();
      await s.shot('past-runs');
    },
  },
  {
    name: 'a run is compared with the previous one',
    async run(s) {
      const { window } = s;
      await betterAgent(path.join(s.workspace, 'evals/code-explainer/eval.yaml'));
      await window.openFile('code-explainer/eval.yaml', 1);
      await window.command('waza: Run Suite');
      await window.command('waza: Focus on Runs View');
      const runs = window.locator('.pane-body .monaco-list-row', { hasText: /[23]\/4/ });
      await runs.filter({ hasText: '3/4' }).first().hover();
      await runs.first().getByRole('button', { name: 'Compare With Previous Run' }).click();
      const page = await window.webview('#table tbody tr');
      await page.getByText(/Compared with run .*: 1 task has other results/).first().waitFor();
      await s.shot('compare');
      await s.light('compare');
    },
  },
];

// betterAgent changes the agent so that it can explain closures.
async function betterAgent(suite) {
  const text = await readFile(suite, 'utf8');
  const better = text.replace('It has access to variables.', 'It has access to variables of its enclosing scope.');
  assert.notEqual(better, text);
  await writeFile(suite, better);
}
