/** The part of a page's data that the extension reads, and the requests to repeat its run. */
import type { Counts, RunStatus, SuiteRef, Suspicion } from '../daemon/protocol';
import type { RunRequest } from './request';

/** The members of run.page's data that the extension reads; the report's script reads the rest. */
export interface PageData {
  run: {
    runId: string;
    status: RunStatus;
    suite: SuiteRef;
    startedAt: string;
    endedAt?: string;
    config: { executor: string; agent?: string; model?: string; taskFilters?: string[]; tagFilters?: string[] };
    counted: Counts;
    countedTrials: Counts;
    against?: { runId: string; startedAt: string; model?: string };
  };
  tasks: PageTask[];
}

export interface PageTask {
  id: string;
  /** Id in the suite, if the run has a matrix. */
  task?: string;
  name: string;
  file?: string;
  role?: string;
  verdict?: string;
  counts?: Counts;
  ended: number;
  totalTrials: number;
  flaky?: boolean;
  suspicious?: number;
  suspicions?: Suspicion[];
  ms: number | null;
}

/** The parts of a page, which are the same for all runs. */
export interface PageParts {
  style: string;
  body: string;
  script: string;
}

declare module '../daemon/protocol' {
  interface Methods {
    'run.page': {
      params: { runId: string; against?: string; page?: boolean };
      result: { runId: string; status: RunStatus; data: PageData; page?: PageParts };
    };
  }
}

/** Returns the request for the same run with the current suite. */
export function requestOf({ run }: PageData): RunRequest {
  const { taskFilters, tagFilters, agent, model, executor } = run.config;
  return {
    path: run.suite.path,
    ...(taskFilters?.length ? { tasks: taskFilters } : {}),
    ...(tagFilters?.length ? { tags: tagFilters } : {}),
    ...(agent ? { agent } : { executor }),
    ...(model ? { model } : {}),
  };
}

/** Returns the same request for the tasks that did not pass. */
export function requestOfFailed(data: PageData): RunRequest | undefined {
  const failed = data.tasks.filter((t) => (t.role ?? 'task') === 'task' && ['failed', 'timeout', 'error'].includes(t.verdict ?? ''));
  const tasks = [...new Set(failed.map((t) => globOf(t.task ?? t.id)))];
  const request: RunRequest = { ...requestOf(data), tasks };
  delete request.tags; // the tasks are given by id
  return tasks.length > 0 ? request : undefined;
}

/** Returns a glob that matches only this id. */
export function globOf(id: string): string {
  return id.replace(/[\\*?[\]{}!]/g, '\\$&');
}
