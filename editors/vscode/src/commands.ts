import * as vscode from 'vscode';
import { isSuiteFile } from './daemon/documents';
import { messageOf } from './daemon/errors';
import type { Explorer } from './explorer';
import type { Runnable, RunMode } from './model/request';
import { progressText } from './model/status';
import type { Services } from './services';

/** Registers the commands of the palette, except those of the panel and the tree of runs. */
export function registerCommands(services: Services, explorer: Explorer): vscode.Disposable {
  const { daemon, log, runs } = services;
  const { registerCommand } = vscode.commands;
  return vscode.Disposable.from(
    registerCommand('waza.runSuite', (uri?: vscode.Uri) => runSuite(services, explorer, uri, 'run')),
    registerCommand('waza.runUntilFailure', (uri?: vscode.Uri) => runSuite(services, explorer, uri, 'until failure')),
    registerCommand('waza.runTask', () => runTask(services, explorer, 'run')),
    registerCommand('waza.debugTask', () => runTask(services, explorer, 'debug')),
    registerCommand('waza.cancelRuns', () => runs.cancel()),
    registerCommand('waza.validate', (uri?: vscode.Uri) => validate(services, explorer, uri)),
    registerCommand('waza.restartDaemon', () => daemon.start()),
    registerCommand('waza.showOutput', () => { log.show(); }),
    registerCommand('waza.showResults', (item?: unknown) => services.results.show(targetOf(explorer, item))),
    registerCommand('waza.openTranscript', (item?: unknown) => services.results.show(targetOf(explorer, item))),
    registerCommand('waza.openWalkthrough', () =>
      vscode.commands.executeCommand('workbench.action.openWalkthrough', 'waza.waza#start', false)),
  );
}

/** Returns the results to show for an item of the Test Explorer, or for one of its messages. */
function targetOf(explorer: Explorer, item: unknown): { runId: string; taskId?: string; trial?: number } | undefined {
  const test = typeof item === 'object' && item !== null && 'test' in item ? item.test : item;
  return typeof test === 'object' && test !== null ? explorer.presenter.targets.get(test as vscode.TestItem) : undefined;
}

async function runSuite(services: Services, explorer: Explorer, uri: vscode.Uri | undefined, mode: RunMode): Promise<void> {
  const suite = await chooseSuite(explorer, uri);
  if (suite) {
    await runShowing(services, { path: suite.id }, mode, suite.label);
  }
}

async function runTask(services: Services, explorer: Explorer, mode: RunMode): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const task = editor && await taskAtCursor(explorer, editor);
  const node = task && explorer.tree.node(task);
  if (!task || node?.task === undefined) {
    void vscode.window.showInformationMessage('There is no task at the cursor.');
    return;
  }
  await runShowing(services, { path: node.path, tasks: [node.task] }, mode, task.label);
}

async function taskAtCursor({ tree }: Explorer, editor: vscode.TextEditor): Promise<vscode.TestItem | undefined> {
  await Promise.all(tree.suitesAbove(editor.document.uri).map((suite) => tree.resolve(suite)));
  return tree.taskAt(editor.document.uri, editor.selection.active.line);
}

/** Runs and shows the progress, with a button to cancel. */
async function runShowing(services: Services, what: Runnable, mode: RunMode, label: string): Promise<void> {
  const options = { location: vscode.ProgressLocation.Notification, title: label, cancellable: true };
  await vscode.window.withProgress(options, async (progress, token) => {
    const shown = services.tracker.onEvent((e) => {
      if (e.run.path === what.path) {
        progress.report({ message: progressText([e.run]) });
      }
    });
    try {
      await services.runs.run(what, mode, token);
    } finally {
      shown.dispose();
    }
  });
}

/**
 * Returns the suite to use: the given file, the suite in the editor or the one that its file
 * belongs to, the only suite, or the user's choice.
 */
async function chooseSuite({ tree }: Explorer, uri: vscode.Uri | undefined): Promise<vscode.TestItem | undefined> {
  const file = uri ?? vscode.window.activeTextEditor?.document.uri;
  if (file && isSuiteFile(file)) {
    return tree.ensure(file.fsPath);
  }
  if (tree.suites().length === 0) {
    await tree.refresh();
  }
  const suites = tree.suites();
  const near = file ? tree.suitesAbove(file) : [];
  const only = near.length === 1 ? near : suites;
  if (only.length <= 1) {
    if (only.length === 0) {
      void vscode.window.showInformationMessage('There is no suite in this workspace. A suite is a file named eval.yaml.');
    }
    return only[0];
  }
  const picks = suites.map((suite) => ({ label: suite.label, description: suite.description ?? '', suite }));
  return (await vscode.window.showQuickPick(picks, { placeHolder: 'Which suite?', matchOnDescription: true }))?.suite;
}

async function validate(services: Services, explorer: Explorer, uri: vscode.Uri | undefined): Promise<void> {
  const suite = await chooseSuite(explorer, uri);
  if (!suite) {
    return;
  }
  try {
    const result = await services.daemon.request('eval.validate', { path: suite.id });
    const bad = result.diagnostics.filter((d) => d.severity === 'error');
    const warnings = result.diagnostics.length - bad.length;
    if (bad.length === 0) {
      const also = warnings === 0 ? '' : `, with ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
      void vscode.window.showInformationMessage(`${suite.label} is valid${also}.`);
      return;
    }
    void vscode.window.showErrorMessage(`${suite.label} is invalid: ${bad[0]?.message ?? ''}${bad.length > 1 ? ` (and ${bad.length - 1} more)` : ''}`);
    await vscode.window.showTextDocument(vscode.Uri.file(suite.id), { preview: true });
    await vscode.commands.executeCommand('workbench.actions.view.problems');
  } catch (error) {
    void vscode.window.showErrorMessage(messageOf(error));
  }
}
