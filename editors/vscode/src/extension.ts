import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Daemon } from './daemon/daemon';
import { concernsDaemon } from './daemon/settings';
import { RunStarter } from './explorer/start';
import { RunTracker } from './model/tracker';
import { createResults } from './panel';
import { registerRuns } from './runs';
import type { Results, Services } from './services';

let daemon: Daemon | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('waza', { log: true });
  daemon = new Daemon(log);
  const tracker = new RunTracker(daemon);
  const services: Services = {
    context, daemon, tracker, log, runs: new RunStarter(tracker), results: undefined as unknown as Results,
  };
  services.results = createResults(services);
  context.subscriptions.push(
    log,
    tracker,
    registerRuns(services),
    registerCommands(services),
    vscode.workspace.onDidGrantWorkspaceTrust(() => daemon?.start()),
    vscode.workspace.onDidChangeConfiguration((e) => { if (concernsDaemon(e)) { void daemon?.start(); } }),
  );
  void daemon.start();
}

/** The daemon cancels its runs and cleans up after them before the window closes. */
export async function deactivate(): Promise<void> {
  await daemon?.close();
}
