import type { CompleteParams, LogParams, ProgressParams, RunStatus, Summary } from '../daemon/protocol';

export interface TrialModel {
  readonly number: number;
  /** As the daemon wrote it, including unknown verdicts; undefined while the trial runs. */
  verdict: string | undefined;
  score: number | undefined;
  durationMs: number | undefined;
  cached: boolean;
}

export interface TaskModel {
  readonly id: string;
  name: string;
  /** 'baseline' or 'trigger'; undefined for a task of the suite itself. */
  role: string | undefined;
  totalTrials: number;
  /** Undefined until the task is over. */
  verdict: string | undefined;
  score: number | undefined;
  durationMs: number | undefined;
  readonly trials: Map<number, TrialModel>;
}

/** Number of trials in each state. */
export interface TrialTally {
  total: number;
  done: number;
  running: number;
  passed: number;
  failed: number;
  errors: number;
}

/** Verdicts of trials that run.resume keeps: those that are final. */
const kept = new Set<string>(['passed', 'failed', 'timeout', 'needs_review']);

/**
 * The state of a run, built from its notifications. Each notification counts once: those with a
 * known seq are ignored. For events of an unknown kind, only the seq counts.
 */
export class RunModel {
  status: RunStatus = 'running';
  /** Number of the last event that was applied. */
  seq = 0;
  /** Number of eval.log notifications. */
  logs = 0;
  totalTasks = 0;
  totalTrials = 0;
  error: string | undefined;
  summary: Summary | undefined;
  readonly tasks = new Map<string, TaskModel>();

  constructor(
    readonly runId: string,
    /** Absolute path of the suite, if known. */
    public path?: string,
    /** Identifies the run for the code that started it. */
    readonly origin?: unknown,
  ) {}

  /**
   * Trials that keep their results but are otherwise unknown, because the run started before it was
   * followed.
   */
  private keptUnseen = 0;

  /** Reports whether eval.complete was received. */
  get over(): boolean {
    return this.status !== 'running';
  }

  /** Applies an eval.progress; false if it was received before. */
  progress(p: ProgressParams): boolean {
    if (!this.advance(p.seq)) {
      return false;
    }
    switch (p.event) {
      case 'run_start':
        this.totalTasks = p.totalTasks ?? this.totalTasks;
        this.totalTrials = p.totalTrials ?? this.totalTrials;
        break;
      case 'run_resumed':
        this.resumed(p);
        break;
      case 'task_start':
        this.taskStarted(p);
        break;
      case 'trial_start':
        this.trialStarted(p);
        break;
      case 'trial_complete':
        this.trialCompleted(p);
        break;
      case 'task_complete':
        this.taskCompleted(p);
        break;
    }
    return true;
  }

  /** Applies an eval.log; false if it was received before. */
  log(p: LogParams): boolean {
    if (!this.advance(p.seq)) {
      return false;
    }
    this.logs++;
    return true;
  }

  /**
   * Applies the eval.complete; false if it was received before. An interrupted run has no event for
   * it: when the run resumes, the next event has its number.
   */
  complete(p: CompleteParams): boolean {
    if (p.status === 'interrupted' ? p.seq <= this.seq : !this.advance(p.seq)) {
      return false;
    }
    this.status = p.status;
    this.summary = p.summary;
    this.error = p.error;
    return true;
  }

  tally(): TrialTally {
    const t: TrialTally = { total: this.totalTrials, done: this.keptUnseen, running: 0, passed: 0, failed: 0, errors: 0 };
    for (const task of this.tasks.values()) {
      for (const trial of task.trials.values()) {
        count(t, trial.verdict);
      }
    }
    t.total = Math.max(t.total, t.done + t.running);
    return t;
  }

  private advance(seq: number): boolean {
    if (seq <= this.seq) {
      return false;
    }
    this.seq = seq;
    return true;
  }

  private resumed(p: ProgressParams): void {
    this.status = 'running';
    this.error = undefined;
    this.summary = undefined;
    this.totalTasks = p.totalTasks ?? this.totalTasks;
    this.totalTrials = p.totalTrials ?? this.totalTrials;
    let left = 0;
    for (const task of this.tasks.values()) {
      left += keepDecided(task);
      if (task.trials.size === 0) {
        this.tasks.delete(task.id);
      } else if (task.trials.size < task.totalTrials) {
        task.verdict = undefined;
      }
    }
    const keeps = p.keptTrials ?? 0;
    this.keptUnseen = left === keeps ? 0 : keeps;
    if (left !== keeps) {
      this.tasks.clear(); // the suite changed, and the daemon does not report which trials it keeps
    }
  }

  private taskStarted(p: ProgressParams): void {
    const task = this.task(p);
    if (task) {
      task.verdict = undefined;
      task.totalTrials = p.totalTrials ?? task.totalTrials;
    }
  }

  private trialStarted(p: ProgressParams): void {
    if (p.trialNum !== undefined) {
      this.task(p)?.trials.set(p.trialNum, {
        number: p.trialNum, verdict: undefined, score: undefined, durationMs: undefined, cached: false,
      });
    }
  }

  private trialCompleted(p: ProgressParams): void {
    if (p.trialNum !== undefined) {
      this.task(p)?.trials.set(p.trialNum, {
        number: p.trialNum, verdict: p.status ?? 'error', score: p.score, durationMs: p.durationMs, cached: p.cached === true,
      });
    }
  }

  private taskCompleted(p: ProgressParams): void {
    const task = this.task(p);
    if (task) {
      task.verdict = p.status ?? 'error';
      task.score = p.score;
      task.durationMs = p.durationMs;
    }
  }

  private task(p: ProgressParams): TaskModel | undefined {
    if (p.taskId === undefined) {
      return undefined;
    }
    let task = this.tasks.get(p.taskId);
    if (!task) {
      task = {
        id: p.taskId, name: p.taskName ?? p.taskId, role: p.role, totalTrials: p.totalTrials ?? 0,
        verdict: undefined, score: undefined, durationMs: undefined, trials: new Map(),
      };
      this.tasks.set(p.taskId, task);
    }
    return task;
  }
}

/** Returns how many trials of a task passed. */
export function passedTrials(task: TaskModel): number {
  let n = 0;
  for (const trial of task.trials.values()) {
    n += trial.verdict === 'passed' ? 1 : 0;
  }
  return n;
}

/** Removes the trials that a resumed run repeats, and returns how many are left. */
function keepDecided(task: TaskModel): number {
  for (const [number, trial] of task.trials) {
    if (trial.verdict === undefined || !kept.has(trial.verdict)) {
      task.trials.delete(number);
    }
  }
  return task.trials.size;
}

function count(t: TrialTally, verdict: string | undefined): void {
  switch (verdict) {
    case undefined:
      t.running++;
      return;
    case 'passed':
      t.passed++;
      break;
    case 'failed':
    case 'timeout':
      t.failed++;
      break;
    case 'error':
      t.errors++;
      break;
    case 'cancelled':
    case 'skipped':
      return; // the trial did not run
  }
  t.done++;
}
