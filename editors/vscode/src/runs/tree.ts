import * as vscode from 'vscode';
import type { RunInfo } from '../daemon/protocol';
import type { RunEvent } from '../model/tracker';
import type { RunModel } from '../model/run';
import type { Services } from '../services';
import { itemOf, tooltipOf, type Node, type RunNode, type SuiteNode, type TaskNode } from './nodes';

/** How many runs of a suite, and tasks of a run, are shown at first and with each "Load more". */
const runsAtOnce = 20;
const tasksAtOnce = 100;

/** How many of the newest runs are looked through for suites. */
const runsForSuites = 2000;

/** Least time between two refreshes because of what runs tell. */
const refreshEveryMs = 700;

/** The tree of past runs: suites, their runs, and the tasks of those. All of it is read when it is opened. */
export class RunTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  private readonly shown = new Map<string, number>();
  private readonly parents = new Map<string, Node>();
  private timer: NodeJS.Timeout | undefined;
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly services: Services) {}

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  refresh(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.changed.fire(undefined);
  }

  /** What runs tell changes the tree, though not for each trial. */
  heard(event: RunEvent): void {
    if (event.kind === 'complete' || event.kind === 'begun') {
      this.refresh();
    } else if (event.kind === 'progress' && (event.params.event === 'task_complete' || event.params.event === 'run_resumed')) {
      this.timer ??= setTimeout(() => { this.refresh(); }, refreshEveryMs);
    }
  }

  loadMore(of: string): void {
    this.shown.set(of, this.countOf(of) + this.pageOf(of));
    this.changed.fire(this.parents.get(of));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return itemOf(node);
  }

  async resolveTreeItem(item: vscode.TreeItem, node: Node): Promise<vscode.TreeItem> {
    if (node.kind === 'run') {
      const { result } = await this.services.daemon.request('run.status', { runId: node.run.runId });
      item.tooltip = tooltipOf(node.run, result);
    }
    return item;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (this.services.daemon.state !== 'running') {
      return [];
    }
    switch (node?.kind) {
      case undefined: return this.suites();
      case 'suite': return this.runs(node);
      case 'run': return this.tasks(node);
      default: return [];
    }
  }

  private async suites(): Promise<Node[]> {
    const { runs } = await this.services.daemon.request('run.list', { limit: runsForSuites });
    const byPath = new Map<string, SuiteNode>();
    for (const run of runs.filter(isOfWorkspace)) {
      if (!byPath.has(run.suite.path)) {
        byPath.set(run.suite.path, { kind: 'suite', suite: run.suite, newest: run });
      }
    }
    return [...byPath.values()];
  }

  private async runs(node: SuiteNode): Promise<Node[]> {
    const key = `suite ${node.suite.path}`;
    this.parents.set(key, node);
    const count = this.countOf(key);
    const { runs } = await this.services.daemon.request('run.list', { path: node.suite.path, limit: count + 1 });
    const list: Node[] = runs.slice(0, count).map((run): RunNode => ({ kind: 'run', run: this.current(run) }));
    return runs.length > count ? [...list, { kind: 'more', of: key }] : list;
  }

  private async tasks(node: RunNode): Promise<Node[]> {
    const key = `run ${node.run.runId}`;
    this.parents.set(key, node);
    const count = this.countOf(key);
    const { data } = await this.services.daemon.request('run.page', { runId: node.run.runId });
    const list: Node[] = data.tasks.slice(0, count).map((task): TaskNode => ({ kind: 'task', run: node.run, task }));
    return data.tasks.length > count ? [...list, { kind: 'more', of: key }] : list;
  }

  /** A run of this window may have come further than the list tells. */
  private current(run: RunInfo): RunInfo {
    const model: RunModel | undefined = this.services.tracker.get(run.runId);
    return model && !model.over && run.tasks.total < model.totalTasks ? { ...run, tasks: { ...run.tasks, total: model.totalTasks } } : run;
  }

  private pageOf(of: string): number {
    return of.startsWith('suite ') ? runsAtOnce : tasksAtOnce;
  }

  private countOf(of: string): number {
    return this.shown.get(of) ?? this.pageOf(of);
  }
}

/** Runs of suites that lie elsewhere are left out, unless no folder is open. */
function isOfWorkspace(run: RunInfo): boolean {
  return vscode.workspace.workspaceFolders === undefined || vscode.workspace.getWorkspaceFolder(vscode.Uri.file(run.suite.path)) !== undefined;
}
