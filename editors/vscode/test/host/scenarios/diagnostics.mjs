// The daemon as a language server: findings, quick fixes, completion, hover.

import assert from 'node:assert/strict';

export const diagnostics = [
  {
    name: 'a misspelt key is reported while typing, and a quick fix corrects it',
    async run(s) {
      const { window } = s;
      const editor = await window.openFile('commit-messages/eval.yaml', 5);
      const squiggles = editor.locator('.squiggly-warning, .squiggly-error');
      assert.equal(await squiggles.count(), 0);
      await window.goTo(5, 'trials_per_task'.length + 3);
      await window.press('Backspace', 'Backspace');
      await squiggles.first().waitFor();
      await window.locator('.statusbar-item[id="status.problems"]', { hasText: '1' }).waitFor();
      await s.shot('diagnostics');
      await window.press('Control+.');
      const fix = window.locator('.action-widget .monaco-list-row', { hasText: 'trials_per_task' }).first();
      await fix.waitFor();
      await s.shot('quick-fix');
      await fix.click();
      await squiggles.first().waitFor({ state: 'detached' });
      await editor.locator('.view-lines', { hasText: 'trials_per_task:' }).waitFor();
      await s.shot('quick-fix-done');
      await window.command('File: Revert File');
    },
  },
  {
    name: 'options of a grader are completed and explained',
    async run(s) {
      const { window } = s;
      const editor = await window.openFile('code-explainer/tasks/explain.yaml', 11);
      await window.goTo(11, 100);
      await window.press('Enter');
      await window.type('not');
      const list = window.locator('.suggest-widget.visible .monaco-list-row');
      if (!(await list.first().isVisible())) await window.press('Control+Space');
      await list.filter({ hasText: 'not_contains' }).first().waitFor();
      await s.shot('completion');
      await window.press('Enter');
      await editor.locator('.view-lines', { hasText: 'not_contains' }).waitFor();
      await window.command('File: Revert File');
      await editor.getByText('contains', { exact: true }).first().hover();
      await window.locator('.monaco-hover:visible', { hasText: 'in any letter case' }).first().waitFor();
      await s.shot('hover');
    },
  },
];
