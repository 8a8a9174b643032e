import * as vscode from 'vscode';
import type { Daemon } from './daemon';

const openSettings = 'Open Settings';
const howToInstall = 'How to Install';
const restart = 'Restart';
const showOutput = 'Show Output';

/** Informs the user, once for each problem, that the daemon does not run, and what to do. */
export function showProblems(daemon: Daemon): { dispose(): void } {
  let shown = '';
  return daemon.onDidChangeState((state) => {
    switch (state) {
      case 'running':
        shown = '';
        return;
      case 'missing':
        if (shown !== daemon.problem?.message) {
          shown = daemon.problem?.message ?? '';
          void missing(shown);
        }
        return;
      case 'failed':
        void failed();
        return;
      case 'idle':
      case 'starting':
      case 'restarting':
    }
  });
}

async function missing(message: string): Promise<void> {
  const choice = await vscode.window.showWarningMessage(message, openSettings, howToInstall);
  if (choice === openSettings) {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'waza.path');
  } else if (choice === howToInstall) {
    await vscode.commands.executeCommand('waza.openWalkthrough');
  }
}

async function failed(): Promise<void> {
  const choice = await vscode.window.showErrorMessage('waza ended too often and does not restart.', restart, showOutput);
  if (choice !== undefined) {
    await vscode.commands.executeCommand(choice === restart ? 'waza.restartDaemon' : 'waza.showOutput');
  }
}
