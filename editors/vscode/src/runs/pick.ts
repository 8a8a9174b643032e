import * as vscode from 'vscode';
import type { RunInfo } from '../daemon/protocol';
import { modelsOf, agoText, outcomeOf } from '../model/format';
import type { Services } from '../services';
import { iconOf } from './icons';

export interface PickOptions {
  placeHolder: string;
  /** Suite file whose runs are listed; all suites when absent. */
  path?: string;
  /** Run to exclude from the list. */
  without?: string;
  /** Run to mark. */
  current?: string;
}

/** Maximum number of runs to list. */
const most = 500;

/** Asks the user to choose a run. */
export async function pickRun(services: Services, options: PickOptions): Promise<RunInfo | undefined> {
  const { path, placeHolder, without, current } = options;
  const list = services.daemon.request('run.list', { limit: most, ...(path === undefined ? {} : { path }) });
  const items = list.then(({ runs }) => runs.filter((run) => run.runId !== without).map((run) => ({
    run,
    label: `${run.tasks.passed}/${run.tasks.total} passed`,
    iconPath: iconOf(outcomeOf(run)),
    description: [path === undefined ? run.suite.name : '', agoText(run.startedAt), modelsOf(run), run.runId === current ? 'shown' : ''].filter(Boolean).join(' · '),
    detail: run.runId,
  })));
  if ((await items).length === 0) {
    void vscode.window.showInformationMessage('There is no other run of this suite.');
    return undefined;
  }
  return (await vscode.window.showQuickPick(items, { placeHolder, matchOnDescription: true, matchOnDetail: true }))?.run;
}
