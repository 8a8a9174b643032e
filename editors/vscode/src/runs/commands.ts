import * as vscode from 'vscode';
import { messageOf } from '../daemon/errors';
import { agoText } from '../model/format';
import { requestOf } from '../model/page';
import type { Services } from '../services';
import { exportRun } from './export';
import type { MoreNode, Node, RunNode, TaskNode } from './nodes';
import { pickRun } from './pick';
import type { RunTree } from './tree';

type Work = (runs: RunNode[], node: RunNode | TaskNode) => Promise<unknown>;

/** Registers the commands of the tree. From the palette they ask for the run. */
export function registerRunCommands(services: Services, tree: RunTree): vscode.Disposable {
  const { daemon, results, runs } = services;
  const on = (name: string, work: Work): vscode.Disposable =>
    vscode.commands.registerCommand(`waza.runs.${name}`, (node?: Node, all?: Node[]) => showErrors(async () => {
      const chosen = await chosenOf(services, node, all);
      if (chosen) {
        await work(chosen.runs, chosen.node);
      }
    }));
  return vscode.Disposable.from(
    vscode.commands.registerCommand('waza.runs.refresh', () => { tree.refresh(); }),
    vscode.commands.registerCommand('waza.runs.loadMore', (node: MoreNode) => { tree.loadMore(node.of); }),
    on('show', (_, node) => results.show({ runId: node.run.runId, ...(node.kind === 'task' ? { taskId: node.task.id } : {}) })),
    on('compareSelected', (list) => compareSelected(services, list)),
    on('comparePrevious', ([node]) => comparePrevious(services, node)),
    on('again', async ([node]) => {
      const page = node && await daemon.request('run.page', { runId: node.run.runId });
      await (page && runs.start(requestOf(page.data)));
    }),
    on('resume', async ([node]) => { await (node && runs.resume(node.run.runId)); }),
    on('cancel', async (list) => { await Promise.all(list.map((node) => runs.cancel(node.run.runId))); }),
    on('delete', async (list) => {
      await remove(services, list);
      tree.refresh();
    }),
    on('export', async ([node]) => { await (node && exportRun(services, node.run.runId)); }),
  );
}

/** Returns the runs for a command: the selected ones, the clicked one, or the user's choice. */
async function chosenOf(services: Services, node?: Node, all?: Node[]): Promise<{ runs: RunNode[]; node: RunNode | TaskNode } | undefined> {
  const selected = (all ?? []).filter((n): n is RunNode => n.kind === 'run');
  if (node?.kind === 'run' || node?.kind === 'task') {
    const own: RunNode = { kind: 'run', run: node.run };
    return { runs: selected.some((n) => n.run.runId === node.run.runId) ? selected : [own], node };
  }
  const run = await pickRun(services, { placeHolder: 'Run' });
  return run && { runs: [{ kind: 'run', run }], node: { kind: 'run', run } };
}

async function compareSelected(services: Services, list: RunNode[]): Promise<void> {
  const [first, second] = list.map((node) => node.run).sort((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
  if (!first) {
    return;
  }
  const other = second ?? await pickRun(services, { placeHolder: 'Run to compare with', path: first.suite.path, without: first.runId });
  if (!other) {
    return;
  }
  const earlier = Date.parse(other.startedAt) < Date.parse(first.startedAt);
  await services.results.compare((earlier ? other : first).runId, (earlier ? first : other).runId);
}

/** Number of runs to search for the previous run. */
const mostBefore = 10_000;

async function comparePrevious(services: Services, node: RunNode | undefined): Promise<void> {
  if (!node) {
    return;
  }
  const { runs } = await services.daemon.request('run.list', { path: node.run.suite.path, limit: mostBefore });
  const before = runs[runs.findIndex((run) => run.runId === node.run.runId) + 1];
  if (before) {
    await services.results.compare(before.runId, node.run.runId);
  } else {
    void vscode.window.showInformationMessage(`There is no earlier run of ${node.run.suite.name}.`);
  }
}

async function remove(services: Services, list: RunNode[]): Promise<void> {
  const [first] = list;
  const what = list.length === 1 && first ? `the run of ${first.run.suite.name}, ${agoText(first.run.startedAt)}` : `${list.length} runs`;
  const choice = await vscode.window.showWarningMessage(`Delete ${what}?`, {
    modal: true, detail: 'This deletes the results, transcripts and files of its trials and cannot be undone.',
  }, 'Delete');
  if (choice !== 'Delete') {
    return;
  }
  for (const { run } of list) {
    await services.daemon.request('run.rm', { runId: run.runId });
  }
}

async function showErrors(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    void vscode.window.showErrorMessage(messageOf(error));
  }
}
