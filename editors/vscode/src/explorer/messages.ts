import { readFile, stat } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import { messageOf } from '../daemon/errors';
import type { TaskModel } from '../model/run';
import { findingsOf, plainMessage, type Finding } from './findings';
import { graderLine } from './locate';
import { plural } from './names';

/** Maximum number of findings of a task to fetch: each is a request, and most are the same. */
const maxFetched = 12;
/** Larger files are not searched for a grader. */
const maxFileBytes = 1 << 20;

/** Explains why trials did not pass, from the daemon's records. */
export class Messages {
  constructor(private readonly daemon: Daemon, private readonly log: vscode.LogOutputChannel) {}

  /** Returns the findings of a trial; have is the number of findings that its task already has. */
  async of(target: { runId: string; taskId: string; trial: number }, status: string, score: number | undefined, have: number): Promise<Finding[]> {
    const plain: Finding = { grader: undefined, message: plainMessage(status, score), trials: [target.trial] };
    if (have >= maxFetched) {
      return [plain];
    }
    try {
      const { trial } = await this.daemon.request('run.trial', target);
      return findingsOf(trial);
    } catch (error) {
      this.log.warn(`cannot read trial ${target.trial} of ${target.taskId} in ${target.runId}: ${messageOf(error)}`);
      return [plain];
    }
  }

  /**
   * Returns the messages of a trial. They have no location, because the messages of its task are
   * shown there.
   */
  ofTrial(findings: readonly Finding[]): vscode.TestMessage[] {
    return findings.map((f) => messageFor(f, f.grader === undefined ? f.message : `${f.grader}: ${f.message}`));
  }

  /** Returns the messages of a task, at the lines of their graders, with the number of affected trials. */
  ofTask(findings: readonly Finding[], task: vscode.TestItem, model: TaskModel | undefined): Promise<vscode.TestMessage[]> {
    const total = model?.trials.size ?? 0;
    const shown: readonly Finding[] = findings.length > 0 ? findings : [
      { grader: undefined, message: `The task ended with the verdict ${model?.verdict ?? 'failed'}.`, trials: [] },
    ];
    return Promise.all(shown.map(async (f) => {
      const times = total > 1 && f.trials.length > 0 ? ` (${f.trials.length} of ${plural(total, 'trial')})` : '';
      const message = messageFor(f, f.grader === undefined ? `${f.message}${times}` : `${f.grader}${times}: ${f.message}`);
      const location = await locate(task, f.grader);
      return location ? Object.assign(message, { location }) : message;
    }));
  }
}

function messageFor(f: Finding, text: string): vscode.TestMessage {
  const message = f.expected !== undefined && f.actual !== undefined
    ? vscode.TestMessage.diff(text, f.expected, f.actual)
    : new vscode.TestMessage(text);
  message.contextValue = 'wazaTrial';
  return message;
}

/** Returns the location of a grader: in the task's file or, if that does not declare it, at the task. */
async function locate(item: vscode.TestItem, grader: string | undefined): Promise<vscode.Location | undefined> {
  const { uri, range } = item;
  if (!uri || !range) {
    return undefined;
  }
  const line = grader === undefined ? undefined : graderLine(await textOf(uri), grader, range.start.line);
  return new vscode.Location(uri, line === undefined ? range : new vscode.Range(line, 0, line, 0));
}

async function textOf(uri: vscode.Uri): Promise<string> {
  const open = vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri.toString());
  if (open) {
    return open.getText();
  }
  try {
    return (await stat(uri.fsPath)).size <= maxFileBytes ? await readFile(uri.fsPath, 'utf8') : '';
  } catch {
    return '';
  }
}
