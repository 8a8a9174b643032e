/** Messages between a page and the extension, and the part of the page's data that the extension reads. */
import type { Counts, RunStatus, SuiteRef } from '../daemon/protocol';
import type { TrialTally } from '../model/run';

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
  ms: number | null;
}

/** The parts of a page, which are the same for all runs. */
export interface PageParts {
  style: string;
  body: string;
  script: string;
}

/** State of a page that survives a reload of the window. */
export interface PageState {
  runId: string;
  against?: string;
  /** Result of report.state(): filters, order, open tasks, and the open trial. */
  report?: unknown;
}

/** Action of a button above the report. */
export type Action = 'pick' | 'compare' | 'alone' | 'again' | 'failed' | 'cancel' | 'resume' | 'browser' | 'export';

export type ToPage =
  | { type: 'show'; data: PageData; live: boolean; address?: string }
  | { type: 'tally'; live: boolean; tally: TrialTally }
  | { type: 'go'; address: string }
  | { type: 'trial'; id: number; trial?: unknown; error?: string }
  | { type: 'problem'; text: string };

export type FromPage =
  | { type: 'ready' }
  | { type: 'trial'; id: number; taskId: string; num: number }
  | { type: 'openTask'; taskId: string }
  | { type: 'openGrader'; taskId: string; name: string }
  | { type: 'action'; action: Action };

/** Returns the address of a task, or a trial of it, in a page. */
export function addressOf(taskId: string, trial?: number): string {
  return `#task/${encodeURIComponent(taskId)}${trial === undefined ? '' : `/trial/${trial}`}`;
}

declare module '../daemon/protocol' {
  interface Methods {
    'run.page': {
      params: { runId: string; against?: string; page?: boolean };
      result: { runId: string; status: RunStatus; data: PageData; page?: PageParts };
    };
  }
}
