// An untrusted workspace runs nothing until it is trusted.

import assert from 'node:assert/strict';

import { until } from '../processes.mjs';

export const trust = [
  {
    name: 'nothing runs in an untrusted workspace, and waza starts when it is trusted',
    async run(s) {
      const { window, explorer } = s;
      await window.locator('.part.banner').getByText('Restricted Mode').first().waitFor();
      await window.openFile('refactor/eval.yaml', 1);
      await s.shot('untrusted');
      assert.equal(s.daemon(), undefined, 'the daemon was started');
      await window.locator('.part.banner').getByText('Manage').click();
      await window.locator('.workspace-trust-editor').getByText('Trust', { exact: true }).first().click();
      await until('the daemon started', 45, () => s.daemon());
      await s.shot('trusted');
      await window.reload(); // the trust editor covers the window
      await explorer.open();
      await explorer.see('refactor');
      await s.shot('trusted-tree');
    },
  },
];
