import * as vscode from 'vscode';
import type { RunInfo, SuiteRef, Summary } from '../daemon/protocol';
import {
  agoText, durationText, endedOf, modelsOf, moneyText, outcomeOf, outcomeOfVerdict, rateText, runDescription, shortText, suspicionText,
  suspiciousText,
} from '../model/format';
import type { PageTask } from '../model/page';
import { iconOf } from './icons';

export interface SuiteNode { kind: 'suite'; suite: SuiteRef; newest: RunInfo }
export interface RunNode { kind: 'run'; run: RunInfo }
export interface TaskNode { kind: 'task'; run: RunInfo; task: PageTask }
/** Loads more runs of a suite, or tasks of a run. */
export interface MoreNode { kind: 'more'; of: string }
export type Node = SuiteNode | RunNode | TaskNode | MoreNode;

/** Creates the tree item of a node. */
export function itemOf(node: Node): vscode.TreeItem {
  switch (node.kind) {
    case 'suite': return suiteItem(node);
    case 'run': return runItem(node.run);
    case 'task': return taskItem(node);
    case 'more': return moreItem(node);
  }
}

function suiteItem({ suite, newest }: SuiteNode): vscode.TreeItem {
  const item = new vscode.TreeItem(suite.name || suite.path, vscode.TreeItemCollapsibleState.Expanded);
  item.id = `suite ${suite.path}`;
  item.contextValue = 'suite';
  item.iconPath = new vscode.ThemeIcon('beaker');
  item.description = vscode.workspace.asRelativePath(suite.path).replace(/\/?eval\.ya?ml$/, '');
  item.tooltip = new vscode.MarkdownString().appendMarkdown(`**${escape(suite.name)}**\n\n`).appendText(suite.description ?? '')
    .appendMarkdown(`\n\nLast run ${agoText(newest.startedAt)}`);
  return item;
}

function runItem(run: RunInfo): vscode.TreeItem {
  const item = new vscode.TreeItem(dateText(run.startedAt), vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `run ${run.runId}`;
  item.contextValue = `run ${run.status}`;
  item.iconPath = iconOf(outcomeOf(run));
  item.description = runDescription(run);
  item.command = { command: 'waza.runs.show', title: 'Show Results', arguments: [{ kind: 'run', run } satisfies RunNode] };
  item.accessibilityInformation = { label: `${outcomeOf(run)} run of ${run.suite.name}, ${runDescription(run)}` };
  return item;
}

function taskItem({ run, task }: TaskNode): vscode.TreeItem {
  const item = new vscode.TreeItem(task.id);
  item.id = `task ${run.runId} ${task.id}`;
  item.contextValue = 'task';
  item.iconPath = iconOf(outcomeOfVerdict(task.verdict, run.status === 'running'));
  item.description = taskDescription(task);
  item.tooltip = [
    [task.name === task.id ? '' : task.name, task.verdict ?? 'not ended'].filter(Boolean).join(' · '),
    ...(task.suspicions ?? []).map(suspicionText),
  ].join('\n');
  item.command = { command: 'waza.runs.show', title: 'Show Results', arguments: [{ kind: 'task', run, task } satisfies TaskNode] };
  return item;
}

/**
 * Returns the description of a task: how many trials passed, if there are several, and the duration
 * of one.
 */
function taskDescription(task: PageTask): string {
  const trials = task.counts && task.totalTrials > 1 ? `${task.counts.passed}/${task.counts.total}` : '';
  return [trials, task.flaky ? 'flaky' : '', suspiciousText(task.suspicious), task.ms === null ? '' : durationText(task.ms)].filter(Boolean).join(' · ');
}

function moreItem(node: MoreNode): vscode.TreeItem {
  const item = new vscode.TreeItem('Load more…');
  item.id = `more ${node.of}`;
  item.iconPath = new vscode.ThemeIcon('ellipsis');
  item.command = { command: 'waza.runs.loadMore', title: 'Load More', arguments: [node] };
  return item;
}

/** Returns the details of a run for a tooltip. */
export function tooltipOf(run: RunInfo, summary: Summary | null): vscode.MarkdownString {
  const text = new vscode.MarkdownString(undefined, true);
  text.appendMarkdown(`**${escape(run.suite.name)}** · ${run.status}\n\n`);
  const rows = tooltipRows(run, summary);
  text.appendMarkdown(`| | |\n|:--|:--|\n${rows.map(([name, value]) => `| ${name} | ${escape(value)} |`).join('\n')}\n`);
  return text;
}

function tooltipRows(run: RunInfo, summary: Summary | null): [string, string][] {
  const usage = summary?.usage;
  const tokens = usage ? Math.max(usage.totalTokens ?? 0, usage.inputTokens + usage.outputTokens) : 0;
  const rows: [string, string][] = [
    ['Tasks passed', `${run.tasks.passed} of ${run.tasks.total}${summary ? rateText(summary) : ''}`],
    ['Trials passed', `${run.trials.passed} of ${run.trials.total || endedOf(run.trials)}${summary ? rateText(summary.trials) : ''}`],
    ['Errors', run.trials.errors ? String(run.trials.errors) : ''],
    ['Suspicious passes', summary?.suspicious ? String(summary.suspicious) : ''],
    ['Flaky tasks', summary?.flaky ? String(summary.flaky) : ''],
    ['Executor', [run.executor, run.agent].filter(Boolean).join(' · ')],
    ['Model', modelsOf(run)],
    ['Started', dateText(run.startedAt)],
    ['Took', typeof run.durationMs === 'number' ? durationText(run.durationMs) : ''],
    ['Tokens', tokens ? shortText(tokens) : ''],
    ['Cost', usage?.costUsd ? moneyText(usage.costUsd) : ''],
    ['Run', run.runId],
  ];
  return rows.filter(([, value]) => value !== '');
}

function dateText(at: string): string {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
    : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

/** Escapes texts of suites, so that they are not read as Markdown. */
function escape(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~]/g, '\\$&').replace(/\s+/g, ' ');
}
