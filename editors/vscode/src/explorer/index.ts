import * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import type { Disposable } from '../daemon/emitter';
import type { RunTracker } from '../model/tracker';
import type { Runs } from '../services';
import { RunPresenter } from './presenter';
import { Profiles } from './profiles';
import { RunStarter } from './start';
import { SuiteTree } from './tree';
import { Watcher } from './watcher';

/** The part of the Test Explorer that others use. */
export interface Explorer extends Disposable {
  readonly tree: SuiteTree;
  readonly presenter: RunPresenter;
  readonly runs: Runs;
}

/** Shows suites, tasks and trials in the Test Explorer, and runs them from there. */
export function createExplorer(daemon: Daemon, tracker: RunTracker, log: vscode.LogOutputChannel): Explorer {
  const controller = vscode.tests.createTestController('waza', 'waza');
  const tree = new SuiteTree(controller, daemon, log);
  const presenter = new RunPresenter(controller, tree, tracker, daemon, log);
  const starter = new RunStarter(daemon, tracker, log);
  const watcher = new Watcher(daemon, tracker, presenter, log);
  const profiles = new Profiles(tree, tracker, starter, presenter, watcher);
  profiles.register(controller);
  const all = vscode.Disposable.from(watcher, presenter, tree, controller);
  const runs: Runs = {
    run: (what, mode, token) => profiles.runNamed(what, mode, token),
    start: (request) => starter.start(request),
    resume: (runId) => starter.resume(runId),
    cancel: (runId) => starter.cancel(runId),
  };
  return { tree, presenter, runs, dispose: () => { all.dispose(); } };
}
