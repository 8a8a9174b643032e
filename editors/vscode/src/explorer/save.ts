import path from 'node:path';
import * as vscode from 'vscode';

/** The daemon runs what is on the disk: files of the suite that are being edited are saved before. */
export async function saveSuite(suitePath: string): Promise<void> {
  const below = path.dirname(suitePath) + path.sep;
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty && !document.isUntitled && document.uri.fsPath.startsWith(below)) {
      await document.save();
    }
  }
}
