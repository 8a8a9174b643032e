import * as vscode from 'vscode';
import { resumeInterrupted } from './daemon/settings';
import type { RunModel } from './model/run';

/** Decides by the setting whether a run whose daemon died resumes. */
export async function mayResume(run: RunModel): Promise<boolean> {
  switch (resumeInterrupted()) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'ask': {
      const t = run.tally();
      const choice = await vscode.window.showWarningMessage(
        `waza ended during a run. ${t.done} of ${t.total} trials are done and are kept.`, 'Resume');
      return choice === 'Resume';
    }
  }
}
