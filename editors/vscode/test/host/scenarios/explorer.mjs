// The tree of suites, tasks and trials, and runs that it starts.

import assert from 'node:assert/strict';

export const explorer = [
  {
    name: 'the tree is filled lazily',
    needed: true,
    async run(s) {
      const { window, explorer } = s;
      await explorer.open();
      for (const suite of ['code-explainer', 'commit-messages', 'refactor']) await explorer.see(suite);
      assert.equal(await explorer.count(), 3, 'tasks are not requested before they are visible');
      await explorer.expand('code-explainer');
      for (const task of ['Find the complexity', 'Explain a function', 'Repair the sorting', 'Explain closures']) await explorer.see(task);
      await window.openFile('code-explainer/eval.yaml', 61);
      await s.shot('tree');
    },
  },
  {
    name: 'a run shows results on tasks and trials',
    needed: true,
    async run(s) {
      const { explorer } = s;
      await explorer.run('code-explainer');
      await explorer.see('code-explainer', 'Failed');
      await explorer.see('Explain a function', 'Passed');
      await explorer.see('Repair the sorting', 'Passed');
      await explorer.see('Explain closures', 'Failed');
      await explorer.see('Find the complexity', 'Failed');
      await explorer.expand('Find the complexity');
      await explorer.see('Trial 1', 'Passed');
      await explorer.see('Trial 2', 'Passed');
      await explorer.see('Trial 3', 'Failed');
      await s.shot('results');
    },
  },
  {
    name: 'a failed grader is shown at its line, with expected and actual',
    async run(s) {
      const { window } = s;
      const editor = await window.openFile('code-explainer/eval.yaml', 61);
      const message = editor.locator('.test-error-content-widget', { hasText: 'enclosing scope' }).first();
      await message.waitFor();
      await s.shot('failed-grader');
      await message.click();
      const peek = window.locator('.test-output-peek');
      await peek.waitFor();
      await peek.getByText('enclosing scope').first().waitFor();
      await s.shot('failed-grader-peek');
      await s.light('failed-grader-peek');
      await window.press('Escape');
      await peek.waitFor({ state: 'hidden' });
    },
  },
  {
    name: 'the status bar counts running trials, and a run is cancelled',
    async run(s) {
      const { window, explorer } = s;
      await s.shut();
      await explorer.collapse('code-explainer'); // its trials have the same names
      await explorer.expand('refactor');
      await explorer.run('refactor');
      await explorer.see('refactor', 'Running');
      await explorer.expand('Extract a function');
      await explorer.see('Trial 1', 'Passed');
      await window.locator('.statusbar-item[id*="waza"]', { hasText: '1/9' }).waitFor();
      await s.shot('running');
      await window.command('Test: Cancel Test Run');
      for (const label of ['Trial 2', 'Trial 3', 'Rename a variable', 'Inline a helper']) await explorer.see(label, 'Skipped');
      await window.locator('.statusbar-item[id*="waza"]', { hasText: 'cancelled' }).waitFor();
      await s.shot('cancelled');
    },
  },
  {
    name: 'one task is run',
    async run(s) {
      const { explorer } = s;
      await s.release();
      await explorer.run('Rename a variable');
      await explorer.see('Rename a variable', 'Passed');
      await s.shot('one-task');
    },
  },
];
