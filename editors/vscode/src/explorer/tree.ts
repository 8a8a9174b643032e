import { existsSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import type { SuiteSummary, TaskLine } from '../daemon/protocol';
import type { Daemon } from '../daemon/daemon';
import { messageOf } from '../daemon/errors';
import { splitId } from './names';
import type { Chosen } from './selection';

/** The meaning of an item of the tree. */
export interface Node extends Chosen {
  kind: 'suite' | 'task' | 'cell' | 'trial';
}

/** Formatters and version control write files in bursts. */
const settleMs = 300;
/** Further trials of a task are counted, but have no item. */
export const maxTrialItems = 200;

/**
 * The items of the Test Explorer: suites, which are updated with the files of the workspace, their
 * tasks, which are read when needed, and trials, which appear as they run.
 */
export class SuiteTree implements vscode.Disposable {
  private readonly nodes = new WeakMap<vscode.TestItem, Node>();
  /** Items of tasks that no suite lists, but that a run reported. */
  private readonly runOnly = new WeakSet<vscode.TestItem>();
  /** The suites whose tasks are needed; they are kept up to date. */
  private readonly wanted = new Set<string>();
  /** Reads of tasks that succeeded or are in progress. */
  private readonly resolved = new Map<string, Promise<void>>();
  private readonly subscriptions: { dispose(): void }[];
  private settling: NodeJS.Timeout | undefined;
  private refreshing: Promise<void> | undefined;
  private again = false;

  constructor(
    private readonly controller: vscode.TestController,
    private readonly daemon: Daemon,
    private readonly log: vscode.LogOutputChannel,
  ) {
    controller.resolveHandler = async (item) => { await (item ? this.resolve(item) : this.refresh()); };
    controller.refreshHandler = () => this.refresh();
    const watcher = vscode.workspace.createFileSystemWatcher('**/*.{yaml,yml}');
    const changed = (): void => { this.soon(); };
    this.subscriptions = [
      watcher, watcher.onDidCreate(changed), watcher.onDidChange(changed), watcher.onDidDelete(changed),
      vscode.workspace.onDidChangeWorkspaceFolders(changed),
      vscode.window.onDidChangeActiveTextEditor((editor) => { this.opened(editor?.document); }),
      daemon.onDidChangeState((state) => { if (state === 'running') { void this.refresh(); } }),
    ];
  }

  dispose(): void {
    clearTimeout(this.settling);
    for (const s of this.subscriptions) {
      s.dispose();
    }
  }

  node(item: vscode.TestItem): Node | undefined {
    return this.nodes.get(item);
  }

  suites(): vscode.TestItem[] {
    return children(this.controller.items);
  }

  suite(suitePath: string): vscode.TestItem | undefined {
    return this.controller.items.get(suitePath);
  }

  /** Returns the ids of the tasks of a suite that have been read. */
  tasksOf(suitePath: string): string[] {
    const suite = this.suite(suitePath);
    return suite ? children(suite.children).map((item) => this.node(item)?.task ?? item.id) : [];
  }

  /** Returns the suites that a file may belong to: those in its directory or above it. */
  suitesAbove(uri: vscode.Uri): vscode.TestItem[] {
    return this.suites().filter((suite) => uri.fsPath.startsWith(path.dirname(suite.id) + path.sep));
  }

  /** Returns the task of a line in a file: the last one that starts at or above it. */
  taskAt(uri: vscode.Uri, line: number): vscode.TestItem | undefined {
    let best: vscode.TestItem | undefined;
    for (const suite of this.suites()) {
      for (const task of children(suite.children)) {
        const start = task.range?.start.line;
        if (start !== undefined && task.uri?.fsPath === uri.fsPath && start <= line && start >= (best?.range?.start.line ?? 0)) {
          best = task;
        }
      }
    }
    return best;
  }

  /** Reads the suites of the workspace. Only one read runs at a time; requests during it cause one more. */
  refresh(): Promise<void> {
    clearTimeout(this.settling);
    if (this.refreshing) {
      this.again = true;
      return this.refreshing;
    }
    this.refreshing = this.read().catch((error: unknown) => { this.log.warn(`cannot list suites: ${messageOf(error)}`); })
      .finally(() => {
        this.refreshing = undefined;
        if (this.again) {
          this.again = false;
          void this.refresh();
        }
      });
    return this.refreshing;
  }

  /** Reads the tasks of a suite, unless they have been read. */
  async resolve(item: vscode.TestItem): Promise<void> {
    const node = this.node(item);
    if (node?.kind === 'suite') {
      await this.readTasks(item, node.path, false);
    }
  }

  /** Returns the suite of that path with its tasks, and adds it to the tree if needed. */
  async ensure(suitePath: string): Promise<vscode.TestItem> {
    const item = this.suite(suitePath) ?? this.addSuite({ path: suitePath, name: path.basename(path.dirname(suitePath)), skill: '', version: '' });
    await this.readTasks(item, suitePath, false);
    return item;
  }

  /** Returns the item of a task as a run names it: that of a cell is below its task's. */
  task(suite: vscode.TestItem, id: string, name: string, role?: string): vscode.TestItem {
    const suitePath = this.node(suite)?.path ?? suite.id;
    const split = splitId(id, (task) => suite.children.get(task) !== undefined);
    const parent = suite.children.get(split.task) ?? this.addTask(suite, suitePath, split.task, name, role);
    if (split.cell === undefined) {
      return parent;
    }
    return parent.children.get(id) ?? this.addCell(parent, suitePath, id, split.cell);
  }

  /** Returns the item of a trial; undefined if there are too many. */
  trial(task: vscode.TestItem, number: number): vscode.TestItem | undefined {
    if (number > maxTrialItems) {
      return undefined;
    }
    const id = `${task.id}#${number}`;
    const known = task.children.get(id);
    if (known) {
      return known;
    }
    const node = this.node(task);
    // Without a range, so that the task's message is the only one in its file.
    const item = this.controller.createTestItem(id, `Trial ${number}`, task.uri);
    item.sortText = String(number).padStart(6, '0');
    this.nodes.set(item, { kind: 'trial', path: node?.path ?? '', task: node?.task ?? task.id, trial: number });
    task.children.add(item);
    return item;
  }

  /** Removes trials of an earlier run that had more trials of the task. */
  trimTrials(task: vscode.TestItem, total: number): void {
    for (const item of children(task.children)) {
      const node = this.node(item);
      if (node?.kind === 'trial' && (total === 1 || (node.trial ?? 0) > total)) {
        task.children.delete(item.id);
      }
    }
  }

  private soon(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => void this.refresh(), settleMs);
  }

  /** Reads the tasks of a suite in an editor, so that they get marks in the margin. */
  private opened(document: vscode.TextDocument | undefined): void {
    const suites = document?.languageId === 'yaml' ? this.suitesAbove(document.uri) : [];
    void vscode.commands.executeCommand('setContext', 'waza.inSuite', suites.length > 0);
    for (const suite of suites) {
      void this.resolve(suite);
    }
  }

  private async read(): Promise<void> {
    if (this.daemon.state !== 'running') {
      return;
    }
    const found = new Map<string, SuiteSummary>();
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      if (folder.uri.scheme === 'file') {
        const list = await this.daemon.request('eval.list', { directory: folder.uri.fsPath });
        for (const suite of list.evals) {
          const absolute = path.resolve(folder.uri.fsPath, suite.path);
          found.set(absolute, { ...suite, path: absolute });
        }
      }
    }
    for (const item of this.suites()) {
      if (found.has(item.id)) {
        continue;
      }
      if (stillThere(item)) {
        this.wanted.add(item.id); // reading its tasks reports its errors
      } else {
        this.controller.items.delete(item.id);
        this.resolved.delete(item.id);
        this.wanted.delete(item.id);
      }
    }
    for (const suite of found.values()) {
      this.addSuite(suite);
    }
    await Promise.all([...this.wanted].map(async (p) => {
      const item = this.suite(p);
      await (item && this.readTasks(item, p, true));
    }));
    this.opened(vscode.window.activeTextEditor?.document);
    void vscode.commands.executeCommand('setContext', 'waza.hasSuites', found.size > 0);
  }

  private addSuite(summary: SuiteSummary): vscode.TestItem {
    let item = this.suite(summary.path);
    if (!item) {
      const uri = vscode.Uri.file(summary.path);
      item = this.controller.createTestItem(summary.path, summary.name, uri);
      place(item, new vscode.Range(0, 0, 0, 0));
      item.canResolveChildren = true;
      this.nodes.set(item, { kind: 'suite', path: summary.path });
      this.controller.items.add(item);
    }
    item.label = summary.name === '' ? path.basename(path.dirname(summary.path)) : summary.name;
    const shown = vscode.workspace.asRelativePath(summary.path);
    item.description = path.dirname(shown) === '.' ? shown : path.dirname(shown);
    item.sortText = shown;
    return item;
  }

  private readTasks(item: vscode.TestItem, suitePath: string, reload: boolean): Promise<void> {
    this.wanted.add(suitePath);
    const known = this.resolved.get(suitePath);
    if (known && !reload) {
      return known;
    }
    const reading = this.readTasksNow(item, suitePath);
    this.resolved.set(suitePath, reading);
    return reading;
  }

  private async readTasksNow(item: vscode.TestItem, suitePath: string): Promise<void> {
    item.busy = true;
    try {
      const { tasks } = await this.daemon.request('task.list', { path: suitePath });
      item.error = undefined;
      const ids = new Set(tasks.map((t) => t.id));
      for (const child of children(item.children)) {
        if (!ids.has(child.id) && !this.runOnly.has(child)) {
          item.children.delete(child.id);
        }
      }
      for (const [i, task] of tasks.entries()) {
        this.updateTask(item, suitePath, task, i);
      }
    } catch (error) {
      item.error = messageOf(error);
      this.resolved.delete(suitePath); // so that the next request tries again
    } finally {
      item.busy = false;
    }
  }

  private updateTask(suite: vscode.TestItem, suitePath: string, task: TaskLine, index: number): void {
    const file = path.resolve(path.dirname(suitePath), task.file);
    let item = suite.children.get(task.id);
    if (item?.uri?.fsPath !== file) { // the file of an item cannot be changed
      item = this.createTask(suite, suitePath, task.id, task.name, vscode.Uri.file(file));
    }
    const line = Math.max(0, (task.line ?? 1) - 1);
    place(item, new vscode.Range(line, 0, line, 0));
    item.label = task.name === '' ? task.id : task.name;
    item.sortText = String(index).padStart(6, '0');
    item.tags = (task.tags ?? []).map((tag) => new vscode.TestTag(tag));
    for (const below of children(item.children)) {
      if (this.node(below)?.kind === 'cell') {
        place(below, item.range);
      }
    }
  }

  /** Adds a task that only a run reports: of trigger tests, or of an agent without skills. */
  private addTask(suite: vscode.TestItem, suitePath: string, id: string, name: string, role: string | undefined): vscode.TestItem {
    const item = this.createTask(suite, suitePath, id, name, suite.uri);
    item.description = role === 'trigger' ? 'trigger test' : role ?? '';
    item.sortText = `~${id}`;
    this.runOnly.add(item);
    return item;
  }

  private createTask(suite: vscode.TestItem, suitePath: string, id: string, name: string, uri: vscode.Uri | undefined): vscode.TestItem {
    const item = this.controller.createTestItem(id, name, uri);
    this.nodes.set(item, { kind: 'task', path: suitePath, task: id });
    suite.children.add(item);
    return item;
  }

  private addCell(task: vscode.TestItem, suitePath: string, id: string, cell: string): vscode.TestItem {
    const item = this.controller.createTestItem(id, cell, task.uri);
    place(item, task.range);
    this.nodes.set(item, { kind: 'cell', path: suitePath, task: id });
    task.children.add(item);
    return item;
  }
}

export function children(items: vscode.TestItemCollection): vscode.TestItem[] {
  return [...items].map(([, item]) => item);
}

/**
 * Reports whether the file of a suite exists, even if it is not a valid suite now. It often is not
 * while the user types, and its results should stay.
 */
function stillThere(suite: vscode.TestItem): boolean {
  return suite.uri !== undefined && vscode.workspace.getWorkspaceFolder(suite.uri) !== undefined && existsSync(suite.uri.fsPath);
}

function place(item: vscode.TestItem, range: vscode.Range | undefined): void {
  item.range = range;
}

