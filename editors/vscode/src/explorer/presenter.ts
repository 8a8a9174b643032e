import * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import type { ProgressParams, Verdict } from '../daemon/protocol';
import { passedTrials, type RunModel, type TaskModel } from '../model/run';
import type { RunEvent, RunTracker } from '../model/tracker';
import { scoreText, suspicionText, suspiciousText } from '../model/format';
import { merged, type Finding } from './findings';
import { Origin, RunGroup } from './group';
import { Messages } from './messages';
import { duration, plural, terminalText } from './names';
import type { SuiteTree } from './tree';

/** A run of the daemon while it is shown. */
interface Shown {
  run: RunModel;
  group: RunGroup;
  /** Undefined until the suite's tasks are read; events wait in queue until then. */
  suite: vscode.TestItem | undefined;
  queue: Promise<void>;
  /** Findings of trials whose tasks are not over. */
  findings: Map<string, Finding[]>;
  /** Items that have started or failed, and have no final state. */
  unsettled: Set<vscode.TestItem>;
}

/**
 * Shows runs of the tracker in the Test Explorer, no matter who started them. It handles the events
 * of one run in order: each waits until the previous one is done, which may have requested the
 * graders of a trial.
 */
export class RunPresenter implements vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private readonly messages: Messages;
  private readonly subscription: { dispose(): void };
  /** The trial to show for an item: the last one, or the first failed one of a task. */
  readonly targets = new WeakMap<vscode.TestItem, { runId: string; taskId?: string; trial?: number }>();

  constructor(
    private readonly controller: vscode.TestController,
    private readonly tree: SuiteTree,
    private readonly tracker: RunTracker,
    daemon: Daemon,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.messages = new Messages(daemon, log);
    this.subscription = tracker.onEvent((e) => { this.heard(e); });
  }

  dispose(): void {
    this.subscription.dispose();
  }

  /**
   * Creates a group whose runs are started with it as their origin. Cancelling it in the Test
   * Explorer cancels them.
   */
  group(request: vscode.TestRunRequest, name?: string): RunGroup {
    const test = this.controller.createTestRun(request, name);
    const cancelled = test.token.onCancellationRequested(() => {
      for (const runId of group.runIds) {
        this.tracker.cancel(runId).catch((error: unknown) => { this.log.warn(`cannot cancel ${runId}: ${String(error)}`); });
      }
    });
    const group = new RunGroup(test, test.token, () => { cancelled.dispose(); });
    return group;
  }

  private heard(e: RunEvent): void {
    const shown = this.shown.get(e.run.runId) ?? this.createShown(e.run);
    shown.queue = shown.queue.then(() => this.show(shown, e)).catch((error: unknown) => {
      this.log.error(`${e.run.runId}: ${String(error)}`);
    });
  }

  private createShown(run: RunModel): Shown {
    const origin = run.origin instanceof Origin ? run.origin : undefined;
    const group = origin?.group ?? this.ownGroup(run);
    group.add(run.runId);
    const shown: Shown = { run, group, suite: undefined, queue: Promise.resolve(), findings: new Map(), unsettled: new Set() };
    this.shown.set(run.runId, shown);
    shown.queue = this.attach(shown).catch((error: unknown) => { this.log.error(String(error)); });
    if (!origin) {
      group.seal();
    }
    return shown;
  }

  /** Creates the group of a run that the Test Explorer did not start. */
  private ownGroup(run: RunModel): RunGroup {
    const suite = run.path === undefined ? undefined : this.tree.suite(run.path);
    return this.group(new vscode.TestRunRequest(suite ? [suite] : undefined), run.runId);
  }

  private async attach(shown: Shown): Promise<void> {
    if (shown.run.path !== undefined) {
      shown.suite = await this.tree.ensure(shown.run.path);
      this.targets.set(shown.suite, { runId: shown.run.runId });
    }
  }

  private async show(shown: Shown, e: RunEvent): Promise<void> {
    switch (e.kind) {
      case 'started':
        return;
      case 'progress':
        await this.progress(shown, e.params);
        return;
      case 'log':
        this.output(shown, `${e.params.level === 'info' ? '' : `${e.params.level}: `}${e.params.message}`, e.params.taskId);
        return;
      case 'complete':
        this.complete(shown, e.params.error);
        return;
      case 'lost':
        this.complete(shown, e.error);
        return;
    }
  }

  private async progress(shown: Shown, p: ProgressParams): Promise<void> {
    const { test } = shown.group;
    switch (p.event) {
      case 'run_start':
        this.output(shown, `Run ${p.runId}: ${plural(p.totalTasks ?? 0, 'task')}, ${plural(p.totalTrials ?? 0, 'trial')}`);
        return;
      case 'run_resumed':
        this.output(shown, `Run ${p.runId} resumes; ${plural(p.keptTrials ?? 0, 'trial keeps its result', 'trials keep their results')}`);
        return;
      case 'task_start': {
        const task = this.taskItem(shown, p);
        if (task) {
          if (!isSingle(shown.run)) {
            this.tree.trimTrials(task, p.totalTrials ?? 0);
          }
          shown.unsettled.add(task);
          test.started(task);
        }
        return;
      }
      case 'trial_start': {
        const trial = this.trialItem(shown, p);
        if (trial) {
          trial.description = '';
          shown.unsettled.add(trial);
          test.started(trial);
        }
        return;
      }
      case 'trial_complete':
        await this.trialComplete(shown, p);
        return;
      case 'task_complete':
        await this.taskComplete(shown, p);
        return;
    }
  }

  private async trialComplete(shown: Shown, p: ProgressParams): Promise<void> {
    const task = this.taskItem(shown, p);
    const trial = this.trialItem(shown, p);
    if (!task || p.taskId === undefined || p.trialNum === undefined) {
      return;
    }
    this.describe(task, shown.run.tasks.get(p.taskId));
    const target = { runId: p.runId, taskId: p.taskId, trial: p.trialNum };
    if (trial) {
      this.targets.set(trial, target);
      trial.description = p.cached === true ? 'from an earlier run' : '';
    }
    if (!isFailure(p.status)) {
      this.settle(shown, trial, p.status, [], p.durationMs);
      return;
    }
    const findings = await this.messages.of(target, p.status ?? 'error', p.score, shown.findings.get(p.taskId)?.length ?? 0);
    shown.findings.set(p.taskId, [...shown.findings.get(p.taskId) ?? [], ...findings]);
    if (this.targets.get(task)?.runId !== p.runId) {
      this.targets.set(task, target);
    }
    this.settle(shown, trial, p.status, this.messages.ofTrial(findings), p.durationMs);
  }

  private async taskComplete(shown: Shown, p: ProgressParams): Promise<void> {
    const task = this.taskItem(shown, p);
    if (!task || p.taskId === undefined) {
      return;
    }
    const model = shown.run.tasks.get(p.taskId);
    this.describe(task, model);
    const findings = merged(shown.findings.get(p.taskId) ?? []);
    shown.findings.delete(p.taskId);
    if (this.targets.get(task)?.runId !== p.runId) {
      this.targets.set(task, { runId: p.runId, taskId: p.taskId });
    }
    this.settle(shown, task, p.status, isFailure(p.status) ? await this.messages.ofTask(findings, task, model) : [], p.durationMs);
    this.forgive(shown, task, p, model);
    this.outcome(shown, task, p, model);
  }

  /**
   * The tree shows a task as badly as its worst trial. If the task passed nevertheless, those
   * trials do not count.
   */
  private forgive(shown: Shown, task: vscode.TestItem, p: ProgressParams, model: TaskModel | undefined): void {
    if (p.status !== 'passed' || isSingle(shown.run)) {
      return;
    }
    for (const { number, verdict } of model?.trials.values() ?? []) {
      const trial = isFailure(verdict) ? task.children.get(`${task.id}#${number}`) : undefined;
      if (trial) {
        trial.description = `${verdict ?? ''}, but the task passed`;
        shown.group.test.skipped(trial);
      }
    }
  }

  /** Writes one line for each task to the output, like the command line. */
  private outcome(shown: Shown, task: vscode.TestItem, p: ProgressParams, model: TaskModel | undefined): void {
    const trials = model ? `  trials ${passedTrials(model)}/${model.trials.size}` : '';
    const score = p.score === undefined ? '' : `  score ${scoreText(p.score)}`;
    const suspicious = p.suspicious ? `  ${suspiciousText(p.suspicious)}` : '';
    this.output(shown, `${(p.status ?? '').padEnd(9)}  ${task.label}${trials}${score}  ${duration(p.durationMs ?? 0)}${suspicious}`, p.taskId);
    for (const s of p.suspicions ?? []) {
      this.output(shown, `  ${suspicionText(s)}`, p.taskId);
    }
  }

  private settle(
    shown: Shown, item: vscode.TestItem | undefined, status: string | undefined, messages: vscode.TestMessage[], ms: number | undefined,
  ): void {
    if (!item) {
      return;
    }
    shown.unsettled.delete(item);
    const { test } = shown.group;
    switch (status as Verdict | undefined) {
      case 'passed':
        test.passed(item, ms);
        return;
      case 'failed':
      case 'timeout':
        test.failed(item, messages, ms);
        return;
      case 'cancelled':
      case 'skipped':
        test.skipped(item);
        return;
      case 'needs_review':
        item.description = 'waiting for a review';
        test.skipped(item);
        return;
      default:
        test.errored(item, messages, ms);
    }
  }

  private complete(shown: Shown, error: string | undefined): void {
    for (const item of shown.unsettled) {
      shown.group.test.skipped(item);
    }
    if (error !== undefined && error !== '') {
      this.output(shown, error);
    }
    const t = shown.run.tally();
    const summary = `${plural(t.done, 'trial')} done, ${t.passed} passed, ${t.failed} failed${t.errors > 0 ? `, ${plural(t.errors, 'error')}` : ''}`;
    this.output(shown, `Run ${shown.run.runId} ${shown.run.status}: ${summary}`);
    this.shown.delete(shown.run.runId);
    shown.group.done(shown.run.runId);
  }

  /** Shows for a task with several trials how many of them passed. */
  private describe(item: vscode.TestItem, task: TaskModel | undefined): void {
    if (task && Math.max(task.totalTrials, task.trials.size) > 1) {
      item.description = `${passedTrials(task)}/${Math.max(task.trials.size, task.verdict === undefined ? task.totalTrials : 0)}`;
    }
  }

  private taskItem(shown: Shown, p: { taskId?: string; taskName?: string; role?: string }): vscode.TestItem | undefined {
    if (!shown.suite || p.taskId === undefined) {
      return undefined;
    }
    return this.tree.task(shown.suite, p.taskId, p.taskName ?? p.taskId, p.role);
  }

  /** Returns undefined for a task of one trial, which shows the trial's result itself. */
  private trialItem(shown: Shown, p: ProgressParams): vscode.TestItem | undefined {
    const task = this.taskItem(shown, p);
    if (!task || p.trialNum === undefined) {
      return undefined;
    }
    const several = (p.totalTrials ?? shown.run.tasks.get(task.id)?.totalTrials ?? 1) > 1 || isSingle(shown.run);
    return several ? this.tree.trial(task, p.trialNum) : undefined;
  }

  private output(shown: Shown, text: string, taskId?: string): void {
    const item = taskId === undefined ? undefined : this.taskItem(shown, { taskId });
    shown.group.test.appendOutput(`${terminalText(text)}\r\n`, undefined, item ?? undefined);
  }
}

/** Reports whether the run is for a single trial of its tasks: the others keep their results. */
function isSingle(run: RunModel): boolean {
  return run.origin instanceof Origin && run.origin.trial !== undefined;
}

function isFailure(status: string | undefined): boolean {
  return status !== 'passed' && status !== 'cancelled' && status !== 'skipped' && status !== 'needs_review';
}
