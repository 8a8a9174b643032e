import path from 'node:path';
import * as vscode from 'vscode';

/** Saves edited files of the suite, because the daemon runs the files on disk. */
export async function saveSuite(suitePath: string): Promise<void> {
  const below = path.dirname(suitePath) + path.sep;
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty && !document.isUntitled && document.uri.fsPath.startsWith(below)) {
      await document.save();
    }
  }
}
