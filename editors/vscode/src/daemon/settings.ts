import * as vscode from 'vscode';

export interface Settings {
  path: string;
  args: string[];
  env: Record<string, string>;
  taskFiles: string[];
}

/** Reads the settings for starting the daemon. When they change, the daemon restarts. */
export function readSettings(): Settings {
  const c = vscode.workspace.getConfiguration('waza');
  return {
    path: c.get('path', ''),
    args: c.get('args', []),
    env: c.get('env', {}),
    taskFiles: c.get('taskFiles', []),
  };
}

export function resumeInterrupted(): 'always' | 'ask' | 'never' {
  return vscode.workspace.getConfiguration('waza').get('resumeInterrupted', 'always');
}

export function concernsDaemon(e: vscode.ConfigurationChangeEvent): boolean {
  return ['path', 'args', 'env', 'taskFiles'].some((key) => e.affectsConfiguration(`waza.${key}`));
}

export function firstFolder(): string | undefined {
  return vscode.workspace.workspaceFolders?.find((f) => f.uri.scheme === 'file')?.uri.fsPath;
}
