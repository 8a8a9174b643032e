// A daemon that dies, and a missing one.

import { kill, until } from '../processes.mjs';

export const recovery = [
  {
    name: 'a daemon killed during a run restarts, and the rest of the run is shown',
    async run(s) {
      const { explorer } = s;
      await s.shut();
      await explorer.open();
      await explorer.collapse('code-explainer'); // its trials have the same names
      await explorer.expand('refactor');
      await explorer.run('refactor');
      await explorer.expand('Extract a function');
      await explorer.see('Trial 1', 'Passed');
      await explorer.see('Trial 2', 'Running');
      const first = s.daemon();
      kill(first.pid, 'SIGKILL');
      await until('another daemon', 40, () => s.daemon() && s.daemon().pid !== first.pid);
      await explorer.see('refactor', 'Running');
      await s.shot('daemon-killed');
      await s.release();
      for (const task of ['Extract a function', 'Rename a variable', 'Inline a helper', 'refactor']) await explorer.see(task, 'Passed');
      for (const trial of ['Trial 1', 'Trial 2', 'Trial 3']) await explorer.see(trial, 'Passed');
      await s.shot('daemon-back');
    },
  },
];
