import * as vscode from 'vscode';
import type { RunInfo } from '../daemon/protocol';
import type { Services } from '../services';

/** Makes the tree of past runs in the view waza.runs. */
export function registerRuns(services: Services): vscode.Disposable {
  const provider = new RunTree(services);
  return vscode.Disposable.from(
    vscode.window.registerTreeDataProvider('waza.runs', provider),
    services.tracker.onEvent((e) => { if (e.kind === 'complete') { provider.refresh(); } }),
  );
}

class RunTree implements vscode.TreeDataProvider<RunInfo> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly services: Services) {}

  refresh(): void {
    this.changed.fire(undefined);
  }

  getTreeItem(run: RunInfo): vscode.TreeItem {
    const item = new vscode.TreeItem(run.suite.name);
    item.description = `${run.tasks.passed}/${run.tasks.total}`;
    return item;
  }

  async getChildren(run?: RunInfo): Promise<RunInfo[]> {
    return run || this.services.daemon.state !== 'running' ? [] : (await this.services.daemon.request('run.list', { limit: 50 })).runs;
  }
}
