import * as vscode from 'vscode';
import { isSuiteFile } from './daemon/documents';
import type { Services } from './services';

/** The commands of the palette, but for those of the panel and the tree of runs. */
export function registerCommands(services: Services): vscode.Disposable {
  const { daemon, log, runs } = services;
  return vscode.Disposable.from(
    vscode.commands.registerCommand('waza.runSuite', async (uri?: vscode.Uri) => {
      const path = uri ?? vscode.window.activeTextEditor?.document.uri;
      if (path && isSuiteFile(path)) {
        await runs.start({ path: path.fsPath });
      }
    }),
    vscode.commands.registerCommand('waza.restartDaemon', () => daemon.start()),
    vscode.commands.registerCommand('waza.showOutput', () => { log.show(); }),
    vscode.commands.registerCommand('waza.showResults', () => services.results.show()),
  );
}
