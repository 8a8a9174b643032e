import type * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import type { Runnable, RunMode, RunRequest } from '../model/request';
import type { RunTracker } from '../model/tracker';

/** The part of a run to show: all, a task, or one trial of it. */
export interface ResultsTarget {
  runId: string;
  taskId?: string;
  /** Number of the trial, from 1. */
  trial?: number;
}

/** Shows results of runs. */
export interface Results {
  /** Shows a run, which may be active; without a target the newest of this window or workspace. */
  show(target?: ResultsTarget): Promise<void>;
  /** Compares a run with an earlier one, base. */
  compare(base: string, run: string): Promise<void>;
}

/**
 * Starts runs, so that they appear in the Test Explorer, the status bar and the panel. Shows errors
 * to the user.
 */
export interface Runs {
  /** Runs a suite or tasks as if selected in the Test Explorer, and waits for the end. */
  run(what: Runnable, mode: RunMode, token?: vscode.CancellationToken): Promise<void>;
  /** Starts a run with any options, and returns its id; undefined if it could not be started. */
  start(request: RunRequest): Promise<string | undefined>;
  /** Resumes a run that is over, like run.resume. */
  resume(runId: string): Promise<string | undefined>;
  /** Cancels a run, or all active runs of this window. */
  cancel(runId?: string): Promise<void>;
}

/** The parts of the extension that other parts use. */
export interface Services {
  readonly context: vscode.ExtensionContext;
  readonly daemon: Daemon;
  /** The runs this window follows, built from the daemon's notifications. */
  readonly tracker: RunTracker;
  readonly log: vscode.LogOutputChannel;
  readonly runs: Runs;
  /** Set before any command can run. */
  results: Results;
}
