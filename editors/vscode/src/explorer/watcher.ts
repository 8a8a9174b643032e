import * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import { messageOf } from '../daemon/errors';
import type { ChangedParams } from '../daemon/protocol';
import type { RunTracker } from '../model/tracker';
import { Origin } from './group';
import type { RunPresenter } from './presenter';
import type { Planned } from './selection';

interface Watched {
  planned: Planned;
  request: vscode.TestRunRequest;
}

/**
 * Continuous run: the daemon watches the files of suites and runs changed tasks. After a restart of
 * the daemon, the watches start again.
 */
export class Watcher implements vscode.Disposable {
  /** Watches of the current daemon by id. */
  private readonly active = new Map<string, Watched>();
  private readonly wanted = new Set<Watched>();
  /** Notifications of watches whose id is not known yet. */
  private readonly early = new Map<string, ChangedParams[]>();
  private pendingStarts = 0;
  private readonly subscriptions: { dispose(): void }[];

  constructor(
    private readonly daemon: Daemon,
    private readonly tracker: RunTracker,
    private readonly presenter: RunPresenter,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      daemon.onNotification('eval.changed', (p) => { this.changed(p); }),
      daemon.onDidChangeState((state) => {
        if (state === 'running') {
          this.active.clear();
          this.early.clear();
          for (const w of this.wanted) {
            void this.startWatch(w);
          }
        }
      }),
    ];
  }

  dispose(): void {
    for (const s of this.subscriptions) {
      s.dispose();
    }
  }

  /** Watches until the token is cancelled. */
  async watch(planned: readonly Planned[], request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const mine = planned.map((p) => ({ planned: p, request }));
    token.onCancellationRequested(() => {
      for (const w of mine) {
        void this.end(w);
      }
    });
    for (const w of mine) {
      this.wanted.add(w);
      await this.startWatch(w);
    }
  }

  private async startWatch(w: Watched): Promise<void> {
    const { path, tasks } = w.planned;
    this.pendingStarts++;
    try {
      const { watchId } = await this.daemon.request('eval.watch', { path, ...(tasks ? { tasks } : {}) });
      this.active.set(watchId, w);
      for (const p of this.early.get(watchId) ?? []) {
        this.changed(p);
      }
      this.early.delete(watchId);
      if (!this.wanted.has(w)) {
        await this.end(w);
      }
    } catch (error) {
      this.wanted.delete(w);
      void vscode.window.showErrorMessage(`Cannot watch ${vscode.workspace.asRelativePath(path)}: ${messageOf(error)}`);
    } finally {
      if (--this.pendingStarts === 0) {
        this.early.clear();
      }
    }
  }

  private async end(w: Watched): Promise<void> {
    this.wanted.delete(w);
    for (const [watchId, other] of this.active) {
      if (other === w) {
        this.active.delete(watchId);
        await this.daemon.request('eval.unwatch', { watchId }).catch((error: unknown) => {
          this.log.warn(`cannot stop watching ${w.planned.path}: ${messageOf(error)}`);
        });
      }
    }
  }

  private changed(p: ChangedParams): void {
    const w = this.active.get(p.watchId);
    if (!w) {
      if (this.pendingStarts > 0) {
        this.early.set(p.watchId, [...this.early.get(p.watchId) ?? [], p]);
      }
      return;
    }
    if (p.error !== undefined) {
      this.log.warn(`${w.planned.path}: ${p.error}`);
    }
    if (p.runId !== undefined) {
      const group = this.presenter.group(w.request);
      this.tracker.expect(p.runId, w.planned.path, new Origin(group));
      group.seal();
    }
  }
}
