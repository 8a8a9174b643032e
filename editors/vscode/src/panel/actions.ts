import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { exportRun } from '../runs/export';
import { pickRun } from '../runs/pick';
import type { RunRequest } from '../services';
import { globOf } from './lines';
import type { Action, PageData } from './messages';
import type { ResultsPanel } from './panel';

/** Performs the action of a button above the report. */
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

/** Returns the request for the same run with the current suite. */
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

/** Returns the same request for the tasks that did not pass. */
export function requestOfFailed(data: PageData): RunRequest | undefined {
  const failed = data.tasks.filter((t) => (t.role ?? 'task') === 'task' && ['failed', 'timeout', 'error'].includes(t.verdict ?? ''));
  const tasks = [...new Set(failed.map((t) => globOf(t.task ?? t.id)))];
  const request: RunRequest = { ...requestOf(data), tasks };
  delete request.tags; // the tasks are given by id
  return tasks.length > 0 ? request : undefined;
}

/**
 * Opens the report in the browser of this machine, which reads a file. If the files are on another
 * machine, the report is saved instead.
 */
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
