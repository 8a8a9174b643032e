import * as vscode from 'vscode';
import type { Services } from '../services';
import { registerRunCommands } from './commands';
import { registerExample } from './example';
import { RunTree } from './tree';

/** Creates the tree of past runs in the view waza.runs, and its commands. */
export function registerRuns(services: Services): vscode.Disposable {
  const tree = new RunTree(services);
  const view = vscode.window.createTreeView('waza.runs', { treeDataProvider: tree, canSelectMany: true, showCollapseAll: true });
  return vscode.Disposable.from(
    tree,
    view,
    view.onDidChangeVisibility((e) => { if (e.visible) { tree.refresh(); } }),
    services.tracker.onEvent((event) => { tree.heard(event); }),
    services.daemon.onDidChangeState((state) => {
      // Until the daemon answers, the tree is empty, which does not mean that there are no
      // runs.
      void vscode.commands.executeCommand('setContext', 'waza.ready', state === 'running');
      tree.refresh();
    }),
    registerRunCommands(services, tree),
    registerExample(services),
  );
}
