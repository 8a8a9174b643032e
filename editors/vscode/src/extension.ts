import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Daemon } from './daemon/daemon';
import { messageOf } from './daemon/errors';
import { showProblems } from './daemon/notices';
import { concernsDaemon } from './daemon/settings';
import { createExplorer } from './explorer';
import { lensCommands } from './lens';
import { RunTracker } from './model/tracker';
import { createResults } from './panel';
import { mayResume } from './resume';
import { registerRuns } from './runs';
import type { Results, Services } from './services';
import { StatusBar } from './status-bar';

let daemon: Daemon | undefined;

/** Connects the parts. In an untrusted workspace all parts exist, but the daemon does not start. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('waza', { log: true });
  const started = daemon = new Daemon(log, lensCommands(() => services));
  const tracker = new RunTracker(started, {
    mayResume,
    onError: (run, error) => { log.error(`${run.runId}: ${messageOf(error)}`); },
  });
  const explorer = createExplorer(started, tracker, log);
  const services: Services = {
    context, daemon: started, tracker, log, runs: explorer.runs, results: undefined as unknown as Results,
  };
  services.results = createResults(services);
  context.subscriptions.push(
    log,
    tracker,
    explorer,
    new StatusBar(services),
    showProblems(started),
    registerRuns(services),
    registerCommands(services, explorer),
    vscode.workspace.onDidGrantWorkspaceTrust(() => started.start()),
    vscode.workspace.onDidChangeConfiguration((e) => { if (concernsDaemon(e)) { void started.start(); } }),
  );
  void started.start();
}

/** The daemon cancels its runs and cleans up after them before the window closes. */
export async function deactivate(): Promise<void> {
  await daemon?.close();
}
