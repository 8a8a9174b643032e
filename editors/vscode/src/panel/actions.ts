import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { requestOf, requestOfFailed, type PageData } from '../model/page';
import type { RunRequest } from '../model/request';
import { exportRun } from '../runs/export';
import { pickRun } from '../runs/pick';
import type { ResultsTarget, Services } from '../services';
import type { Action, PageState } from './messages';

/** The panel whose buttons act: the run that it shows, and how to show another one. */
export interface Shown {
  readonly services: Services;
  /** The shown run, and the run it is compared with. */
  readonly state: PageState;
  /** The data shown last, if any. */
  readonly data: PageData | undefined;
  /** Shows another run, compared with an earlier one, against. */
  show(target: ResultsTarget, against?: string): void;
}

/** Performs the action of a button above the report. */
export async function act(panel: Shown, action: Action): Promise<void> {
  const { services, state, data } = panel;
  switch (action) {
    case 'pick':
      await choose(panel);
      break;
    case 'compare':
      await compare(panel);
      break;
    case 'alone':
      panel.show({ runId: state.runId });
      break;
    case 'again':
      await start(panel, data && requestOf(data));
      break;
    case 'failed':
      await start(panel, data && requestOfFailed(data));
      break;
    case 'cancel':
      await services.runs.cancel(state.runId);
      break;
    case 'resume':
      await services.runs.resume(state.runId);
      break;
    case 'browser':
      await openInBrowser(panel);
      break;
    case 'export':
      await exportRun(services, state.runId, state.against);
      break;
  }
}

async function choose(panel: Shown): Promise<void> {
  const run = await pickRun(panel.services, { placeHolder: 'Run to show', ...suiteOf(panel), current: panel.state.runId });
  if (run) {
    panel.show({ runId: run.runId });
  }
}

async function compare(panel: Shown): Promise<void> {
  const run = await pickRun(panel.services, { placeHolder: 'Earlier run to compare with', ...suiteOf(panel), without: panel.state.runId });
  if (run) {
    panel.show({ runId: panel.state.runId }, run.runId);
  }
}

function suiteOf(panel: Shown): { path?: string } {
  return panel.data ? { path: panel.data.run.suite.path } : {};
}

async function start(panel: Shown, request: RunRequest | undefined): Promise<void> {
  const runId = request && await panel.services.runs.start(request);
  if (runId !== undefined) {
    panel.show({ runId });
  }
}

/**
 * Opens the report in the browser of this machine, which reads a file. If the files are on another
 * machine, the report is saved instead.
 */
async function openInBrowser(panel: Shown): Promise<void> {
  const { services, state } = panel;
  if (vscode.env.uiKind === vscode.UIKind.Web || vscode.env.remoteName !== undefined) {
    await exportRun(services, state.runId, state.against, 'html');
    return;
  }
  const path = join(tmpdir(), `waza-${state.runId}.html`);
  await services.daemon.request('run.export', { runId: state.runId, format: 'html', path, ...(state.against === undefined ? {} : { against: state.against }) });
  await vscode.env.openExternal(vscode.Uri.file(path));
}
