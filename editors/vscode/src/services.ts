import type * as vscode from 'vscode';
import type { Daemon } from './daemon/daemon';
import type { RunOptions } from './daemon/protocol';
import type { RunTracker } from './model/tracker';

/** What to show of a run: all, a task, or one trial of it. */
export interface ResultsTarget {
  runId: string;
  taskId?: string;
  /** Number of the trial, from 1. */
  trial?: number;
}

/** Shows what came out of runs. */
export interface Results {
  /** Shows a run, also one that goes on; without a target the newest of this window or workspace. */
  show(target?: ResultsTarget): Promise<void>;
  /** Compares a run with an earlier one, base. */
  compare(base: string, run: string): Promise<void>;
}

/** A run of a suite that a command, lens or tree asks for. */
export interface RunRequest extends RunOptions {
  /** Absolute path of the suite file. */
  path: string;
  /** Run only the trial of this number, from 1; with tasks only. */
  trial?: number;
}

/** Starts runs, so that they show in the Test Explorer, the status bar and the panel. */
export interface Runs {
  /** Starts a run and answers its id. Errors are shown to the user and make it undefined. */
  start(request: RunRequest): Promise<string | undefined>;
  /** Takes up a run again that is over, as run.resume does. */
  resume(runId: string): Promise<string | undefined>;
  /** Cancels a run, or all that go on in this window. */
  cancel(runId?: string): Promise<void>;
}

/** What the parts of the extension have of each other. */
export interface Services {
  readonly context: vscode.ExtensionContext;
  readonly daemon: Daemon;
  /** The runs this window follows, folded from the daemon's notifications. */
  readonly tracker: RunTracker;
  readonly log: vscode.LogOutputChannel;
  readonly runs: Runs;
  /** Set before any command can be called. */
  results: Results;
}
