/** Messages between a page and the extension. */
import type { PageData } from '../model/page';
import type { TrialTally } from '../model/run';

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
