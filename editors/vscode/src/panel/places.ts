import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import * as vscode from 'vscode';
import type { PageData } from '../model/page';
import type { Services } from '../services';
import { lineOfName } from './lines';

/** Opens the declaration of a task in the suite of a run. */
export async function openTask(services: Services, data: PageData | undefined, taskId: string): Promise<void> {
  const place = await findTask(services, data, taskId);
  if (place) {
    await reveal(place.file, place.line);
  }
}

/** Opens the declaration of a grader: in the task, else in the suite. */
export async function openGrader(services: Services, data: PageData | undefined, taskId: string, name: string): Promise<void> {
  const place = await findTask(services, data, taskId);
  if (!data || !place) {
    return;
  }
  const suite = data.run.suite.path;
  const own = lineOfName(await readFile(place.file, 'utf8'), name, place.line);
  if (own !== undefined) {
    await reveal(place.file, own);
    return;
  }
  const shared = lineOfName(await readFile(suite, 'utf8'), name, 1);
  await (shared === undefined ? reveal(place.file, place.line) : reveal(suite, shared));
}

async function findTask(services: Services, data: PageData | undefined, taskId: string): Promise<{ file: string; line: number } | undefined> {
  if (!data) {
    return undefined;
  }
  const path = data.run.suite.path;
  const shown = data.tasks.find((task) => task.id === taskId);
  const task = await services.daemon.request('task.get', { path, taskId: shown?.task ?? taskId });
  return { file: resolve(dirname(path), task.file), line: task.line };
}

async function reveal(file: string, line: number): Promise<void> {
  const at = new vscode.Position(Math.max(0, line - 1), 0);
  const document = await vscode.workspace.openTextDocument(file);
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, selection: new vscode.Range(at, at), preview: true });
}
