/**
 * The part of the daemon's methods and notifications that the extension uses. docs/methods.md
 * documents all of them; members that the extension does not read are omitted.
 */

export type Verdict = 'passed' | 'failed' | 'error' | 'timeout' | 'cancelled' | 'skipped' | 'needs_review';

export type RunStatus = 'running' | 'completed' | 'failed' | 'cancelled' | 'interrupted';

export type Severity = 'error' | 'warning' | 'info';

export interface SuiteDiagnostic {
  file: string;
  line: number;
  column: number;
  endColumn?: number;
  severity: string;
  code: string;
  message: string;
  suggestion?: string;
}

export interface SuiteSummary {
  path: string;
  name: string;
  skill: string;
  version: string;
  description?: string;
  executor?: string;
}

export interface TaskLine {
  id: string;
  name: string;
  description: string;
  file: string;
  /** Line where the task starts, from 1; older daemons do not send it. */
  line?: number;
  tags?: string[];
}

/** Options of a run besides its suite. */
export interface RunOptions {
  tasks?: string[];
  tags?: string[];
  executor?: string;
  agent?: string;
  model?: string | string[];
  trials?: number;
  workers?: number;
  timeout_seconds?: number;
  verbose?: boolean;
  fail_fast?: boolean;
  cache?: boolean;
}

export interface RunStarted {
  runId: string;
  status: string;
  diagnostics?: SuiteDiagnostic[];
}

export interface Interval {
  low: number;
  high: number;
}

export interface Counts {
  total: number;
  passed: number;
  failed: number;
  errors: number;
  timeouts: number;
  cancelled: number;
  skipped: number;
  needsReview?: number;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  totalTokens?: number;
  costUsd?: number;
}

/**
 * A pass rate. It is null if nothing counts, and while trials wait for a person's score:
 * passRateBounds then contains the possible rates.
 */
export interface Rate {
  passRate: number | null;
  passRateInterval: Interval | null;
  passRateBounds?: Interval;
  /** 'tasks' for a mean over tasks of equal weight; absent for the share of all that count. */
  passRateBasis?: 'tasks';
}

export interface Summary extends Counts, Rate {
  flaky: number;
  trials: Counts & Rate;
  /** The number of trials that passed with suspicious moves; they count as passed. */
  suspicious?: number;
  usage?: Usage;
  trialsCached?: number;
  durationMs: number;
  missed?: string[];
}

export interface SuiteRef {
  path: string;
  name: string;
  skill?: string;
  version?: string;
  description?: string;
}

export interface RunInfo {
  runId: string;
  status: RunStatus;
  suite: SuiteRef;
  executor: string;
  agent?: string;
  model?: string;
  models?: string[];
  startedAt: string;
  endedAt: string | null;
  /** Null while the run is active; absent from older daemons. */
  durationMs?: number | null;
  tasks: Counts;
  trials: Counts;
  /** Damage to the record, or only doubts about it. */
  damage?: { events: number; parts: number; files?: unknown[] };
}

export interface GraderResult {
  name: string;
  type: string;
  score: number;
  passed: boolean;
  weight: number;
  feedback?: string;
  details?: unknown;
  durationMs: number;
  needsReview?: boolean;
  error?: string;
}

export interface TrialResult {
  taskId: string;
  trialNum: number;
  verdict: Verdict;
  score: number | null;
  error?: string;
  durationMs: number;
  output: string;
  graders: GraderResult[] | null;
  cached?: { runId: string };
}

export interface TaskResult {
  id: string;
  /** Id of the task in the suite, if the run has it once for each cell of its matrix. */
  task?: string;
  name: string;
  file: string;
  verdict: Verdict;
  flaky: boolean;
  error?: string;
  trials: TrialResult[] | null;
}

export interface RunResult {
  runId: string;
  status: RunStatus;
  error?: string;
  suite: SuiteRef;
  startedAt: string;
  endedAt: string | null;
  summary: Summary | null;
  tasks: TaskResult[];
}

export interface ProgressParams {
  runId: string;
  seq: number;
  event: string;
  taskId?: string;
  taskName?: string;
  taskNum?: number;
  totalTasks?: number;
  role?: string;
  trialNum?: number;
  totalTrials?: number;
  keptTrials?: number;
  status?: string;
  score?: number;
  durationMs?: number;
  cached?: boolean;
  /** In task_complete: the trials that passed with suspicious moves, and at most 5 of these. */
  suspicious?: number;
  suspicions?: Suspicion[];
}

/** A suspicious move of an agent in a trial that passed. */
export interface Suspicion {
  trialNum: number;
  rule: string;
  place: string;
  evidence: string;
}

export interface LogParams {
  runId: string;
  seq: number;
  level: string;
  message: string;
  taskId?: string;
  taskName?: string;
}

export interface CompleteParams {
  runId: string;
  seq: number;
  status: RunStatus;
  summary?: Summary;
  error?: string;
}

export interface ChangedParams {
  watchId: string;
  runId?: string;
  files: string[] | null;
  tasks: string[] | null;
  totalTasks: number;
  diagnostics?: SuiteDiagnostic[];
  error?: string;
}

/** Methods by name: their parameters and results. */
export interface Methods {
  'eval.list': { params: { directory?: string }; result: { evals: SuiteSummary[]; problems?: SuiteDiagnostic[] } };
  'eval.run': { params: { path: string } & RunOptions; result: RunStarted };
  'eval.validate': {
    params: { path: string };
    result: { valid: boolean; name?: string; errors?: string[]; diagnostics: SuiteDiagnostic[] };
  };
  'eval.watch': { params: { path: string } & RunOptions; result: { watchId: string } };
  'eval.unwatch': { params: { watchId: string }; result: { watchId: string; watched: boolean } };
  'task.list': { params: { path: string }; result: { tasks: TaskLine[] } };
  'task.get': { params: { path: string; taskId: string }; result: { id: string; file: string; line: number } };
  'task.run': {
    params: { path: string; taskId?: string; tasks?: string[]; trial?: number } & Omit<RunOptions, 'tasks'>;
    result: RunStarted;
  };
  'run.status': {
    params: { runId: string };
    result: { runId: string; status: RunStatus; result: Summary | null; error: string | null };
  };
  'run.cancel': { params: { runId: string; finishRunning?: boolean }; result: { runId: string; status: RunStatus } };
  'run.list': { params: { limit?: number; status?: RunStatus; path?: string }; result: { runs: RunInfo[] } };
  'run.result': { params: { runId: string }; result: RunResult };
  'run.trial': { params: { runId: string; taskId: string; trial: number }; result: { runId: string; trial: TrialResult; files?: object[]; incomplete?: string; cut?: number } };
  'run.subscribe': { params: { runId: string; fromSeq?: number }; result: { runId: string; fromSeq: number } };
  'run.unsubscribe': { params: { runId: string }; result: { runId: string; subscribed: boolean } };
  'run.resume': { params: { runId: string }; result: RunStarted };
  'run.rm': { params: { runId: string }; result: { runId: string; bytes: number } };
  'run.export': {
    params: { runId: string; format?: string; path?: string };
    result: { runId: string; format: string; path?: string; bytes: number; content?: string; encoding?: string };
  };
}

/** Notifications by name. */
export interface Notifications {
  'eval.progress': ProgressParams;
  'eval.log': LogParams;
  'eval.complete': CompleteParams;
  'eval.changed': ChangedParams;
}

/** Codes of errors that the extension handles. */
export const codes = {
  evalNotFound: -32000,
  validationFailed: -32001,
  runFailed: -32002,
  runNotFound: -32003,
  taskNotFound: -32004,
  methodNotFound: -32601,
} as const;
