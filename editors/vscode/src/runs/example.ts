import * as vscode from 'vscode';
import type { Services } from '../services';

/** Files of the example, below media/example and below evals/hello of the workspace. */
const files = ['eval.yaml', 'tasks/greet.yaml', 'tasks/add.yaml', 'tasks/dice.yaml'];

/** waza.createExample writes a small suite to the workspace and opens it. */
export function registerExample(services: Services): vscode.Disposable {
  return vscode.commands.registerCommand('waza.createExample', async () => {
    const folder = await folderFor();
    if (!folder) {
      return;
    }
    const directory = await free(vscode.Uri.joinPath(folder, 'evals'), 'hello');
    for (const file of files) {
      const from = vscode.Uri.joinPath(services.context.extensionUri, 'media', 'example', ...file.split('/'));
      await vscode.workspace.fs.copy(from, vscode.Uri.joinPath(directory, ...file.split('/')), { overwrite: false });
    }
    await vscode.window.showTextDocument(vscode.Uri.joinPath(directory, 'eval.yaml'));
  });
}

async function folderFor(): Promise<vscode.Uri | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    const open = 'Open Folder';
    if (await vscode.window.showInformationMessage('The example suite needs a folder. Open one first.', open) === open) {
      await vscode.commands.executeCommand('vscode.openFolder');
    }
    return undefined;
  }
  return folders.length === 1 ? folders[0]?.uri : (await vscode.window.showWorkspaceFolderPick())?.uri;
}

/** Returns the first directory of that name, possibly with a number, that does not exist yet. */
async function free(parent: vscode.Uri, name: string): Promise<vscode.Uri> {
  for (let n = 1; ; n++) {
    const directory = vscode.Uri.joinPath(parent, n === 1 ? name : `${name}-${n}`);
    try {
      await vscode.workspace.fs.stat(directory);
    } catch {
      return directory;
    }
  }
}
