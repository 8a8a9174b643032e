import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { exportRun } from '../runs/export';
import { pickRun } from '../runs/pick';
import type { RunRequest } from '../services';
import { globOf } from './lines';
import type { Action, PageData } from './messages';
import type { ResultsPanel } from './panel';

/** Does what a button above the report says. */
export async function act(panel: ResultsPanel, action: Action): Promise<void> {
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

async function choose(panel: ResultsPanel): Promise<void> {
  const run = await pickRun(panel.services, { placeHolder: 'Run to show', ...suiteOf(panel), current: panel.state.runId });
  if (run) {
    panel.show({ runId: run.runId });
  }
}

async function compare(panel: ResultsPanel): Promise<void> {
  const run = await pickRun(panel.services, { placeHolder: 'Earlier run to compare with', ...suiteOf(panel), without: panel.state.runId });
  if (run) {
    panel.show({ runId: panel.state.runId }, run.runId);
  }
}

function suiteOf(panel: ResultsPanel): { path?: string } {
  return panel.data ? { path: panel.data.run.suite.path } : {};
}

async function start(panel: ResultsPanel, request: RunRequest | undefined): Promise<void> {
  const runId = request && await panel.services.runs.start(request);
  if (runId !== undefined) {
    panel.show({ runId });
  }
}

/** What starts the same again, by the suite as it is now. */
export function requestOf({ run }: PageData): RunRequest {
  const { taskFilters, tagFilters, agent, model, executor } = run.config;
  return {
    path: run.suite.path,
    ...(taskFilters?.length ? { tasks: taskFilters } : {}),
    ...(tagFilters?.length ? { tags: tagFilters } : {}),
    ...(agent ? { agent } : { executor }),
    ...(model ? { model } : {}),
  };
}

/** The same for those tasks that did not pass. */
export function requestOfFailed(data: PageData): RunRequest | undefined {
  const failed = data.tasks.filter((t) => (t.role ?? 'task') === 'task' && ['failed', 'timeout', 'error'].includes(t.verdict ?? ''));
  const tasks = [...new Set(failed.map((t) => globOf(t.task ?? t.id)))];
  const request: RunRequest = { ...requestOf(data), tasks };
  delete request.tags; // they are tasks that had them
  return tasks.length > 0 ? request : undefined;
}

/** The browser of this machine reads a file; where that is not the machine of the files, it is saved instead. */
async function openInBrowser(panel: ResultsPanel): Promise<void> {
  const { services, state } = panel;
  if (vscode.env.uiKind === vscode.UIKind.Web || vscode.env.remoteName !== undefined) {
    await exportRun(services, state.runId, state.against, 'html');
    return;
  }
  const path = join(tmpdir(), `waza-${state.runId}.html`);
  await services.daemon.request('run.export', { runId: state.runId, format: 'html', path, ...(state.against === undefined ? {} : { against: state.against }) });
  await vscode.env.openExternal(vscode.Uri.file(path));
}
