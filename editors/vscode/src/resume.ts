import * as vscode from 'vscode';
import { resumeInterrupted } from './daemon/settings';
import type { RunModel } from './model/run';

/** Whether a run that ended because its daemon died is to be taken up again, as the setting says. */
export async function mayResume(run: RunModel): Promise<boolean> {
  switch (resumeInterrupted()) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'ask': {
      const t = run.tally();
      const choice = await vscode.window.showWarningMessage(
        `waza ended in the midst of a run. ${t.done} of ${t.total} trials are done and are kept.`, 'Resume');
      return choice === 'Resume';
    }
  }
}
