import * as vscode from 'vscode';
import type { Daemon } from './daemon';

const openSettings = 'Open Settings';
const howToGet = 'How to Get It';
const restart = 'Restart';
const showOutput = 'Show Output';

/** Tells the user, once for each trouble, that there is no daemon, and what can be done. */
export function tellTroubles(daemon: Daemon): { dispose(): void } {
  let told = '';
  return daemon.onDidChangeState((state) => {
    switch (state) {
      case 'running':
        told = '';
        return;
      case 'missing':
        if (told !== daemon.problem?.message) {
          told = daemon.problem?.message ?? '';
          void missing(told);
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
  const choice = await vscode.window.showWarningMessage(message, openSettings, howToGet);
  if (choice === openSettings) {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'waza.path');
  } else if (choice === howToGet) {
    await vscode.commands.executeCommand('waza.openWalkthrough');
  }
}

async function failed(): Promise<void> {
  const choice = await vscode.window.showErrorMessage('waza ended too often and is not started again.', restart, showOutput);
  if (choice !== undefined) {
    await vscode.commands.executeCommand(choice === restart ? 'waza.restartDaemon' : 'waza.showOutput');
  }
}
