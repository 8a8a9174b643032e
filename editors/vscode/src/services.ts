import type * as vscode from 'vscode';
import type { Daemon } from './daemon/daemon';
import type { RunOptions } from './daemon/protocol';
import type { Explorer } from './explorer';
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

/** How a run is made: as it is asked for, with one trial and all there is to say, or again and again until something fails. */
export type RunMode = 'run' | 'debug' | 'until failure';

/** What can be run: a suite, or some of its tasks by their ids. */
export interface Runnable {
  path: string;
  tasks?: string[];
}

/** Starts runs, so that they show in the Test Explorer, the status bar and the panel. Errors are shown to the user. */
export interface Runs {
  /** Runs what was chosen in the Test Explorer, and waits for the end. */
  run(what: Runnable, mode: RunMode, token?: vscode.CancellationToken): Promise<void>;
  /** Starts a run, with whatever options, and answers its id; undefined when it could not be started. */
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
  /** The Test Explorer: its tree, and what it shows of runs. */
  readonly explorer: Explorer;
  /** Set before any command can be called. */
  results: Results;
}
