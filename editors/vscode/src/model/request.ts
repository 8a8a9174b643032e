import type { RunOptions } from '../daemon/protocol';

/** A run of a suite, as requested by a command, lens or tree. */
export interface RunRequest extends RunOptions {
  /** Absolute path of the suite file. */
  path: string;
  /** Run only the trial with this number, from 1; requires tasks. */
  trial?: number;
}

/** How to run: normally, with one trial and verbose logs, or repeatedly until something fails. */
export type RunMode = 'run' | 'debug' | 'until failure';

/** A suite, or some of its tasks by their ids. */
export interface Runnable {
  path: string;
  tasks?: string[];
}
