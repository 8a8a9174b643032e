// The state of the trials of a run: small enough for some ten thousand tasks, and fast to change.

export const PENDING = 0;
export const RUNNING = 1;
export const PASSED = 2;
export const FAILED = 3;
export const ERROR = 4;
export const TIMEOUT = 5;
export const CANCELLED = 6;
export const SKIPPED = 7;
export const REVIEW = 8;

/** The states of trials and tasks by number. */
export const STATES = ['pending', 'running', 'passed', 'failed', 'error', 'timeout', 'cancelled', 'skipped', 'needs_review'];

/** Explains the word suspicious. */
export const SUSPICIOUS = 'Trials that passed with suspicious moves; they count as passed';

/** Formats a state for people. */
export const stateText = (s: number): string => (STATES[s] ?? '').replace('_', ' ');

const LETTERS = new Map([...'pfetcsr'].map((letter, i) => [letter, PASSED + i]));

/** States that a resumed run keeps. */
const KEPT = new Set([PASSED, FAILED, TIMEOUT, REVIEW]);

const isOver = (s: number): boolean => s > RUNNING;

export interface Task {
  num: number; // counted from 1
  id: string;
  name: string;
  role: string; // empty for a task of the suite
  verdict: number;
  first: number; // number of the first trial; not 1 when a single trial was requested
  trials: Uint8Array;
  ms: number; // total time of the finished trials
  score: number | null;
  suspicious: number; // trials that passed with suspicious moves
  suspicions: Suspicion[]; // such moves, at most 5
}

/** A suspicious move of an agent in a trial that passed. */
export interface Suspicion {
  trialNum: number;
  rule: string;
  place: string;
  evidence: string;
}

export interface Failure {
  task: Task;
  trial: number;
  state: number;
  score: number | null;
  text: string;
}

/** A notification: eval.progress, eval.log or eval.complete. */
export interface Event {
  runId: string;
  seq: number;
  event?: string;
  taskId?: string;
  taskName?: string;
  taskNum?: number;
  totalTasks?: number;
  role?: string;
  trialNum?: number;
  totalTrials?: number;
  status?: string;
  score?: number;
  durationMs?: number;
  error?: string;
  suspicious?: number;
  suspicions?: Suspicion[];
  level?: string;
  message?: string;
  summary?: Summary;
  deciding?: Deciding;
}

/** How far a run is with its question: pairs so far, budget, and a line of the server about both. */
export interface Deciding {
  pairs: number;
  mostPairs: number;
  executed: number;
  maxTrials?: number;
  spentUsd?: number;
  maxCost?: number;
  text: string;
}

/** Returns the used share of the budget or, if it is larger, that of the pairs that the run can have. */
export function shareOf(d: Deciding): number {
  const part = (n = 0, of = 0): number => (of > 0 ? n / of : 0);
  return Math.min(1, Math.max(part(d.pairs, d.mostPairs), part(d.executed, d.maxTrials), part(d.spentUsd, d.maxCost)));
}

/** The part of a summary that the page shows. */
export interface Summary {
  /** The answer to the question of the run, in the words of the server. */
  decision?: { text: string };
}

/** The reply of run.page. */
export interface PageData {
  run: {
    status: string;
    suite: { name: string; path: string };
    startedAt: string;
    endedAt?: string;
    tookMs: number | null;
    damage?: string;
    summary?: Summary;
    config: { executor: string; agent?: string; model?: string; sandbox?: string };
  };
  tasks: { id: string; name?: string; task?: string; role?: string; totalTrials: number; firstTrial?: number; ended: number; verdict?: string; suspicious?: number; suspicions?: Suspicion[] }[];
  trials: { num: number[]; verdict: string; ms: number[] };
}

const MOST_FAILURES = 500;
const MOST_TRIALS = 500_000;

export class Model {
  tasks: (Task | undefined)[] = [];
  totalTasks = 0;
  /** Trials of the suite's tasks, and how many of them run. */
  total = 0;
  running = 0;
  status = '';
  failure = '';
  /** The answer to the question of the run; empty while it runs, and for other runs. */
  decision = '';
  /** How far the run is with its question; null before its first pairs, and for other runs. */
  deciding: Deciding | null = null;
  started = '';
  seq = 0;
  failures: Failure[] = [];
  notes: { level: string; text: string }[] = [];
  /** Increases with each change. */
  version = 0;
  /** The run was resumed, and its kept trials are not known yet. */
  doubtful = false;

  /** Loads the tasks of a run and the results of its trials. */
  static of(data: PageData): Model {
    const m = new Model();
    m.start(data);
    let at = 0;
    data.tasks.forEach((t, i) => {
      const task = m.tasks[i]!;
      for (let n = 0; n < t.ended; n++, at++) {
        m.move(task, data.trials.num[at] ?? 0, LETTERS.get(data.trials.verdict[at] ?? '') ?? PENDING);
        task.ms += data.trials.ms[at] ?? 0;
      }
      task.verdict = stateOf(t.verdict);
      task.suspicious = t.suspicious ?? 0;
      task.suspicions = t.suspicions ?? [];
    });
    m.status = data.run.status;
    m.decision = data.run.summary?.decision?.text ?? '';
    return m;
  }

  /** Loads the tasks of a run that has not started. */
  start(data: PageData): void {
    this.totalTasks = data.tasks.length;
    this.started = data.run.startedAt;
    data.tasks.forEach((t, i) => this.add(i + 1, t.id, t.name || t.id, t.role ?? '', t.totalTrials, t.firstTrial || 1));
    this.status = 'running';
  }

  private add(num: number, id: string, name: string, role: string, trials: number, first = 1): Task {
    const known = this.tasks[num - 1];
    if (known && known.trials.length >= trials) return known;
    const task: Task = known ?? { num, id, name, role, verdict: PENDING, first, trials: new Uint8Array(0), ms: 0, score: null, suspicious: 0, suspicions: [] };
    const wider = new Uint8Array(Math.min(Math.max(trials, 0), MOST_TRIALS));
    wider.set(task.trials);
    if (!role) this.total += wider.length - task.trials.length;
    task.trials = wider;
    this.tasks[num - 1] = task;
    this.totalTasks = Math.max(this.totalTasks, num);
    return task;
  }

  private move(task: Task, trial: number, to: number): void {
    const i = trial - task.first;
    if (i < 0 || i >= MOST_TRIALS) return;
    if (i >= task.trials.length) this.add(task.num, task.id, task.name, task.role, i + 1);
    const from = task.trials[i]!;
    task.trials[i] = to;
    if (!task.role) this.running += Number(to === RUNNING) - Number(from === RUNNING);
  }

  apply(e: Event): void {
    if (e.seq <= this.seq) return;
    this.seq = e.seq;
    this.version++;
    switch (e.event) {
      case 'run_start':
        this.totalTasks = Math.max(this.totalTasks, e.totalTasks ?? 0);
        this.status = 'running';
        return;
      case 'run_resumed':
        this.resume();
        return;
      case 'decide_progress':
        this.deciding = e.deciding ?? null;
        return;
      case 'run_complete':
        return;
    }
    if (!e.taskNum || e.taskNum > MOST_TRIALS) return;
    const task = this.add(e.taskNum, e.taskId ?? '', e.taskName || (e.taskId ?? ''), e.role ?? '', e.totalTrials ?? 0);
    switch (e.event) {
      case 'task_start':
        task.verdict = RUNNING;
        return;
      case 'trial_start':
        if (task.verdict === PENDING) task.verdict = RUNNING;
        this.move(task, e.trialNum ?? 0, RUNNING);
        return;
      case 'trial_complete':
        this.end(task, e);
        return;
      case 'task_complete':
        task.verdict = stateOf(e.status);
        task.score = e.score ?? null;
        task.suspicious = e.suspicious ?? 0;
        task.suspicions = e.suspicions ?? [];
        for (let i = 0; i < task.trials.length; i++) {
          if (!isOver(task.trials[i]!)) this.move(task, task.first + i, task.verdict === CANCELLED ? CANCELLED : SKIPPED);
        }
    }
  }

  private end(task: Task, e: Event): void {
    const state = stateOf(e.status);
    this.move(task, e.trialNum ?? 0, state);
    task.ms += e.durationMs ?? 0;
    if (state !== FAILED && state !== ERROR && state !== TIMEOUT) return;
    this.failures.push({ task, trial: e.trialNum ?? 0, state, score: e.score ?? null, text: e.error ?? '' });
    if (this.failures.length > MOST_FAILURES) this.failures.shift();
  }

  /** Returns the tasks with suspicious passes. */
  suspects(): Task[] {
    return this.tasks.filter((t): t is Task => t !== undefined && t.suspicious > 0);
  }

  /** Handles the resumption of an interrupted run. */
  private resume(): void {
    this.status = 'running';
    this.failure = '';
    this.decision = '';
    this.doubtful = true;
    for (const task of this.tasks) {
      if (!task) continue;
      let open = false;
      for (let i = 0; i < task.trials.length; i++) {
        if (KEPT.has(task.trials[i]!)) continue;
        open = true;
        this.move(task, task.first + i, PENDING);
      }
      if (open) task.verdict = PENDING;
    }
    this.failures = this.failures.filter((f) => KEPT.has(f.task.trials[f.trial - f.task.first] ?? PENDING));
  }

  /** Handles the end of the run. */
  complete(status: string, failure: string, seq: number, decision = ''): void {
    this.seq = Math.max(this.seq, seq);
    this.version++;
    this.status = status;
    this.failure = failure;
    this.decision = decision;
    if (status === 'completed') return;
    for (const task of this.tasks) {
      if (!task) continue;
      for (let i = 0; i < task.trials.length; i++) if (task.trials[i] === RUNNING) this.move(task, task.first + i, PENDING);
      if (task.verdict === RUNNING) task.verdict = PENDING;
    }
  }

  note(e: Event): void {
    if (e.seq <= this.seq) return;
    this.seq = e.seq;
    if (e.level !== 'warning' && e.level !== 'error') return;
    this.version++;
    this.notes.push({ level: e.level, text: e.message ?? '' });
    if (this.notes.length > 50) this.notes.shift();
  }

  /** Copies the states, for [reconcile]. */
  snapshot(): Uint8Array[] {
    return this.tasks.map((t) => (t ? t.trials.slice() : new Uint8Array(0)));
  }

  /** Reopens trials that a newer record of the run no longer contains as finished. */
  reconcile(before: Uint8Array[], record: Model): void {
    this.doubtful = false;
    this.version++;
    this.tasks.forEach((task, i) => {
      const recorded = record.tasks[i];
      if (!task || !recorded) return;
      let open = false;
      for (let n = 0; n < task.trials.length; n++) {
        const was = before[i]?.[n] ?? PENDING;
        if (isOver(was) && task.trials[n] === was && !isOver(recorded.trials[n] ?? PENDING)) {
          this.move(task, task.first + n, PENDING);
          open = true;
        }
      }
      if (open && task.verdict !== RUNNING) task.verdict = PENDING;
    });
    this.failures = this.failures.filter((f) => isOver(f.task.trials[f.trial - f.task.first] ?? PENDING));
  }
}

export function stateOf(status: string | undefined): number {
  return Math.max(PENDING, STATES.indexOf(status ?? ''));
}
