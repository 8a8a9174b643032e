import * as vscode from 'vscode';
import type { RunOptions } from '../daemon/protocol';
import type { Runnable, RunMode } from '../model/request';
import type { RunTracker } from '../model/tracker';
import { Origin, type RunGroup } from './group';
import type { RunPresenter } from './presenter';
import { saveSuite } from './save';
import { plan, type Chosen, type Planned } from './selection';
import type { RunStarter } from './start';
import type { SuiteTree } from './tree';
import type { Watcher } from './watcher';

/** Options of a profile in addition to the selection. */
type Extra = Omit<RunOptions, 'tasks'> & { trial?: number };

/** One trial, alone, with verbose logs. */
const debugging: Extra = { trials: 1, workers: 1, verbose: true };

/** Runs the selection of the Test Explorer. */
export class Profiles {
  constructor(
    private readonly tree: SuiteTree,
    private readonly tracker: RunTracker,
    private readonly starter: RunStarter,
    private readonly presenter: RunPresenter,
    private readonly watcher: Watcher,
  ) {}

  register(controller: vscode.TestController): void {
    const { Run, Debug } = vscode.TestRunProfileKind;
    controller.createRunProfile('Run', Run, (request, token) => this.run(request, token), true, undefined, true);
    controller.createRunProfile('Run Until Failure', Run, (request, token) => this.untilFailure(request, token), false);
    controller.createRunProfile('Debug One Trial', Debug, (request, token) => this.once(request, token, debugging), true);
  }

  /** Runs the suite or tasks of a command or lens as if they were selected in the tree. */
  async runNamed(what: Runnable, mode: RunMode, token?: vscode.CancellationToken): Promise<void> {
    await saveSuite(what.path);
    const suite = await this.tree.ensure(what.path);
    const items = what.tasks?.map((id) => this.tree.task(suite, id, id)) ?? [suite];
    const request = new vscode.TestRunRequest(items);
    const source = new vscode.CancellationTokenSource();
    const asked = token?.onCancellationRequested(() => { source.cancel(); });
    try {
      await (mode === 'until failure' ? this.untilFailure(request, source.token) : this.once(request, source.token, mode === 'debug' ? debugging : {}));
    } finally {
      asked?.dispose();
      source.dispose();
    }
  }

  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const planned = await this.planned(request);
    if (request.continuous === true) {
      await this.watcher.watch(planned, request, token);
      return;
    }
    await this.start(planned, this.presenter.group(request), token, {});
  }

  private async once(request: vscode.TestRunRequest, token: vscode.CancellationToken, extra: Extra): Promise<void> {
    await this.start(await this.planned(request), this.presenter.group(request), token, extra);
  }

  /** Repeats the run until something fails, it is cancelled, or the limit is reached. */
  private async untilFailure(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const planned = await this.planned(request);
    const most = vscode.workspace.getConfiguration('waza').get('untilFailure.maxRuns', 10);
    for (let n = 1; n <= most && !token.isCancellationRequested; n++) {
      const group = this.presenter.group(request, `Run ${n} until failure`);
      const ids = await this.start(planned, group, token, { fail_fast: true });
      const clean = await Promise.all(ids.map((id) => this.passed(id)));
      if (group.token.isCancellationRequested || clean.length === 0 || clean.includes(false)) {
        return;
      }
    }
  }

  /**
   * Starts the runs one after another, so that they start in the order of the tree, and returns
   * their ids.
   */
  private async start(planned: readonly Planned[], group: RunGroup, token: vscode.CancellationToken, extra: Extra): Promise<string[]> {
    const ids: string[] = [];
    const cancelled = token.onCancellationRequested(() => { this.cancelAll(ids); });
    try {
      for (const p of planned) {
        if (token.isCancellationRequested || group.token.isCancellationRequested) {
          break;
        }
        const id = await this.starter.start(mergedRequest(p, extra), new Origin(group, p.trial));
        if (id !== undefined) {
          ids.push(id);
        }
      }
      if (token.isCancellationRequested || group.token.isCancellationRequested) {
        this.cancelAll(ids);
      }
      group.seal();
      await Promise.all(ids.map((id) => this.passed(id)));
    } finally {
      group.seal();
      cancelled.dispose();
    }
    return ids;
  }

  private cancelAll(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.tracker.get(id)?.over === false) {
        void this.starter.cancel(id);
      }
    }
  }

  /** Waits for the end of a run, and returns whether all its tasks passed. */
  private passed(runId: string): Promise<boolean> {
    return new Promise((resolve) => {
      const run = this.tracker.get(runId);
      const judge = (): boolean => run?.status === 'completed' && run.summary?.passed === run.summary?.total;
      if (!run || run.over) {
        resolve(judge());
        return;
      }
      const subscription = this.tracker.onEvent((e) => {
        if (e.run.runId === runId && (e.kind === 'complete' || e.kind === 'lost')) {
          subscription.dispose();
          resolve(judge());
        }
      });
    });
  }

  private async planned(request: vscode.TestRunRequest): Promise<Planned[]> {
    const include = request.include ?? this.tree.suites();
    const chosen = include.map((item) => this.chosen(item)).filter((c) => c !== undefined);
    await Promise.all([...new Set(chosen.map((c) => c.path))].map((path) => this.tree.ensure(path)));
    const exclude = (request.exclude ?? []).map((item) => this.chosen(item)).filter((c) => c !== undefined);
    return plan(chosen, exclude, (path) => this.tree.tasksOf(path));
  }

  private chosen(item: vscode.TestItem): Chosen | undefined {
    return this.tree.node(item);
  }
}

function mergedRequest(p: Planned, extra: Extra): Planned & Extra {
  const merged = { ...p, ...extra };
  if (p.trial !== undefined) {
    delete merged.trials; // not needed for a single trial
  }
  return merged;
}
