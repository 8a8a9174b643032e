import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import type { Services } from '../services';

interface Format extends vscode.QuickPickItem {
  format: string;
  file: string;
}

/** What run.export writes, in the order of how often people want it. */
export const formats: Format[] = [
  { format: 'html', file: 'report.html', label: 'HTML', description: 'one page with tables, charts and transcripts' },
  { format: 'markdown', file: 'summary.md', label: 'Markdown', description: 'a summary' },
  { format: 'csv', file: 'trials.csv', label: 'CSV', description: 'a row per trial' },
  { format: 'junit', file: 'junit.xml', label: 'JUnit XML', description: 'for CI' },
  { format: 'json', file: 'result.json', label: 'JSON', description: 'all that is known of the run' },
  { format: 'results', file: 'results.json', label: 'Results JSON', description: 'as other tools read it' },
  { format: 'sarif', file: 'waza.sarif', label: 'SARIF', description: 'for code scanning' },
  { format: 'comment', file: 'comment.md', label: 'Comment', description: 'Markdown for a pull request' },
  { format: 'archive', file: 'run.tar.gz', label: 'Archive', description: 'the whole record' },
];

/** Asks for a format, unless there is one, and a file, and writes the run into it. */
export async function exportRun(services: Services, runId: string, against?: string, format?: string): Promise<void> {
  const chosen = formats.find((f) => f.format === format) ?? await vscode.window.showQuickPick(formats, { placeHolder: 'Format to export the run in' });
  const uri = chosen && await vscode.window.showSaveDialog({ defaultUri: place(services, chosen.file), title: `Export as ${chosen.label}` });
  if (!uri) {
    return;
  }
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: 'waza: exporting the run' }, () =>
    services.daemon.request('run.export', {
      runId, format: chosen.format, path: uri.fsPath, ...(against === undefined || chosen.format !== 'html' ? {} : { against }),
    }));
  void services.context.workspaceState.update('waza.exportDirectory', dirname(uri.fsPath));
  await offer(uri, chosen.format);
}

async function offer(uri: vscode.Uri, format: string): Promise<void> {
  const open = format === 'archive' ? undefined : 'Open';
  const choice = await vscode.window.showInformationMessage(`The run is in ${uri.fsPath}`, ...(open ? [open] : []));
  if (choice !== undefined) {
    await (format === 'html' ? vscode.env.openExternal(uri) : vscode.window.showTextDocument(uri));
  }
}

/** Where the last one was written, else the workspace. */
function place(services: Services, file: string): vscode.Uri {
  const last = services.context.workspaceState.get<string>('waza.exportDirectory') ?? vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
  return vscode.Uri.file(join(last, file));
}
