import * as vscode from 'vscode';
import type { DaemonState } from './daemon/connection';
import { statusText } from './model/status';
import type { RunModel } from './model/run';
import type { Services } from './services';

/** Minimum time between updates; faster ones are unreadable. */
const everyMs = 150;

/** Shows the progress of the runs of this window, or that the daemon does not run; a click shows more. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('waza.status', vscode.StatusBarAlignment.Left, 5);
  private readonly subscriptions: { dispose(): void }[];
  private waiting: NodeJS.Timeout | undefined;
  private last: RunModel | undefined;

  constructor(private readonly services: Pick<Services, 'daemon' | 'tracker'>) {
    this.item.name = 'waza';
    this.subscriptions = [
      services.tracker.onEvent((e) => {
        if (e.kind === 'complete' || e.kind === 'lost') {
          this.last = e.run;
        }
        this.soon();
      }),
      services.daemon.onDidChangeState(() => { this.soon(); }),
    ];
    this.show();
  }

  dispose(): void {
    clearTimeout(this.waiting);
    this.item.dispose();
    for (const s of this.subscriptions) {
      s.dispose();
    }
  }

  private soon(): void {
    this.waiting ??= setTimeout(() => {
      this.waiting = undefined;
      this.show();
    }, everyMs);
  }

  private show(): void {
    const { daemon, tracker } = this.services;
    const running = tracker.running;
    void vscode.commands.executeCommand('setContext', 'waza.running', running.length > 0);
    const trouble = troubles[daemon.state];
    if (trouble) {
      this.item.text = trouble.text;
      this.item.tooltip = trouble.tooltip;
      this.item.command = trouble.command;
      this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground');
      this.item.show();
      return;
    }
    this.item.backgroundColor = undefined;
    this.item.command = 'waza.showResults';
    const status = statusText(running, this.last);
    this.item.text = status?.text ?? '$(beaker) waza';
    this.item.tooltip = status?.tooltip ?? 'waza: nothing was run in this window yet.';
    this.item.show();
  }
}

const troubles: Partial<Record<DaemonState, { text: string; tooltip: string; command: string }>> = {
  restarting: { text: '$(sync~spin) waza', tooltip: 'waza has ended and restarts. Click for the output.', command: 'waza.showOutput' },
  missing: { text: '$(warning) waza', tooltip: 'waza was not found. Click to search again.', command: 'waza.restartDaemon' },
  failed: { text: '$(error) waza', tooltip: 'waza could not be started. Click to try again.', command: 'waza.restartDaemon' },
};
