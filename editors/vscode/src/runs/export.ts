import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import type { Services } from '../services';

interface Format extends vscode.QuickPickItem {
  format: string;
  file: string;
  /** Whether the format has several files, and `file` is a directory. */
  folder?: boolean;
}

/** The formats of run.export, the most common first. */
export const formats: Format[] = [
  { format: 'html', file: 'report.html', label: 'HTML', description: 'one page with tables, charts and transcripts' },
  { format: 'markdown', file: 'summary.md', label: 'Markdown', description: 'a summary' },
  { format: 'csv', file: 'trials.csv', label: 'CSV', description: 'a row per trial' },
  { format: 'junit', file: 'junit.xml', label: 'JUnit XML', description: 'for CI' },
  { format: 'json', file: 'result.json', label: 'JSON', description: 'everything recorded of the run' },
  { format: 'results', file: 'results.json', label: 'Results JSON', description: 'for other tools' },
  { format: 'sarif', file: 'waza.sarif', label: 'SARIF', description: 'for code scanning' },
  { format: 'comment', file: 'comment.md', label: 'Comment', description: 'Markdown for a pull request' },
  { format: 'vally', file: 'results.jsonl', label: 'Vally', description: 'results.jsonl of microsoft/vally' },
  { format: 'plugin-eval', file: 'aggregate-result.json', label: 'Plugin eval', description: 'aggregate-result.json of claude plugin eval' },
  { format: 'atif', file: 'trajectories', folder: true, label: 'Trajectories', description: 'a file of Harbor (ATIF) per trial' },
  { format: 'skill-creator', file: 'skill-workspace', folder: true, label: 'Skill workspace', description: 'an iteration for skill-creator' },
  { format: 'archive', file: 'run.tar.gz', label: 'Archive', description: 'the whole record' },
];

/** Asks for a file, and for a format if none is given, and exports the run. */
export async function exportRun(services: Services, runId: string, against?: string, format?: string): Promise<void> {
  const chosen = formats.find((f) => f.format === format) ?? await vscode.window.showQuickPick(formats, { placeHolder: 'Format of the export' });
  const uri = chosen && await vscode.window.showSaveDialog({ defaultUri: place(services, chosen.file), title: `Export as ${chosen.label}` });
  if (!uri) {
    return;
  }
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: 'waza: exporting the run' }, () =>
    services.daemon.request('run.export', {
      runId, format: chosen.format, path: uri.fsPath, ...(against === undefined || chosen.format !== 'html' ? {} : { against }),
    }));
  void services.context.workspaceState.update('waza.exportDirectory', dirname(uri.fsPath));
  await offer(uri, chosen);
}

async function offer(uri: vscode.Uri, { format, folder }: Format): Promise<void> {
  const open = format === 'archive' || folder ? undefined : 'Open';
  const choice = await vscode.window.showInformationMessage(`The run was exported to ${uri.fsPath}`, ...(open ? [open] : []));
  if (choice !== undefined) {
    await (format === 'html' ? vscode.env.openExternal(uri) : vscode.window.showTextDocument(uri));
  }
}

/** The directory of the last export, or else the workspace. */
function place(services: Services, file: string): vscode.Uri {
  const last = services.context.workspaceState.get<string>('waza.exportDirectory') ?? vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
  return vscode.Uri.file(join(last, file));
}
