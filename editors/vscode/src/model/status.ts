import type { RunModel } from './run';

/** The status bar's text for the runs of this window. */
export interface StatusText {
  text: string;
  tooltip: string;
}

/** Returns the progress of active runs, or the result of the last run. */
export function statusText(running: readonly RunModel[], last: RunModel | undefined): StatusText | undefined {
  if (running.length > 0) {
    return runningText(running);
  }
  return last && lastText(last);
}

/** Describes the progress of runs: 12/40 trials, 1 failed. */
export function progressText(running: readonly RunModel[]): string {
  const t = sum(running);
  return [`${t.done}/${t.total} trials`, ...bad(t)].join(', ');
}

function runningText(running: readonly RunModel[]): StatusText {
  const t = sum(running);
  return {
    text: ['$(beaker~spin)', `${t.done}/${t.total}`, ...bad(t)].join(' '),
    tooltip: `waza: ${[`${t.done} of ${t.total} trials done`, `${t.passed} passed`, ...bad(t)].join(', ')}. Click for the results.`,
  };
}

function lastText(run: RunModel): StatusText {
  const s = run.summary;
  if (run.status !== 'completed' || !s) {
    return { text: `$(circle-slash) ${run.status}`, tooltip: `waza: ${run.error ?? `The last run is ${run.status}.`}` };
  }
  const done = s.total - s.skipped - s.cancelled; // after the first failure, others may not have started
  const icon = s.errors > 0 ? '$(warning)' : s.passed < done ? '$(error)' : '$(pass)';
  return {
    text: `${icon} ${s.passed}/${done}`,
    tooltip: `waza: ${s.passed} of ${done} ${done === 1 ? 'task' : 'tasks'} passed in the last run. Click for the results.`,
  };
}

interface Sum {
  done: number;
  total: number;
  passed: number;
  failed: number;
  errors: number;
}

function sum(running: readonly RunModel[]): Sum {
  const all: Sum = { done: 0, total: 0, passed: 0, failed: 0, errors: 0 };
  for (const t of running.map((run) => run.tally())) {
    all.done += t.done;
    all.total += t.total;
    all.passed += t.passed;
    all.failed += t.failed;
    all.errors += t.errors;
  }
  return all;
}

function bad(t: Sum): string[] {
  return [
    ...(t.failed > 0 ? [`${t.failed} failed`] : []),
    ...(t.errors > 0 ? [`${t.errors} ${t.errors === 1 ? 'error' : 'errors'}`] : []),
  ];
}
