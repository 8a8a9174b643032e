import * as vscode from 'vscode';
import type { RunInfo } from '../daemon/protocol';
import type { RunEvent } from '../model/tracker';
import type { RunModel } from '../model/run';
import type { Services } from '../services';
import { itemOf, tooltipOf, type Node, type RunNode, type SuiteNode, type TaskNode } from './nodes';

/**
 * Number of runs of a suite, and of tasks of a run, that are shown at first and added by each "Load
 * more".
 */
const runsAtOnce = 20;
const tasksAtOnce = 100;

/** Number of the newest runs that are searched for suites. */
const runsForSuites = 2000;

/** Minimum time between two refreshes caused by events. */
const refreshEveryMs = 700;

/**
 * The tree of past runs: suites, their runs, and the tasks of those. Each level is read when it is
 * opened.
 */
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

  /** Events of runs refresh the tree, but not each trial. */
  heard(event: RunEvent): void {
    if (event.kind === 'complete' || event.kind === 'started') {
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

  /** Returns the state of a run of this window, which can be newer than the list. */
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

/** Excludes runs of suites outside of the workspace, unless no folder is open. */
function isOfWorkspace(run: RunInfo): boolean {
  return vscode.workspace.workspaceFolders === undefined || vscode.workspace.getWorkspaceFolder(vscode.Uri.file(run.suite.path)) !== undefined;
}
