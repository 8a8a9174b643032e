import * as vscode from 'vscode';
import type { Daemon } from '../daemon/daemon';
import type { ChangedParams } from '../daemon/protocol';
import type { RunTracker } from '../model/tracker';
import { Origin } from './group';
import type { RunPresenter } from './presenter';
import type { Planned } from './selection';
import { messageOf } from './start';

interface Watched {
  planned: Planned;
  request: vscode.TestRunRequest;
}

/**
 * Continuous run: the daemon watches the files of suites and runs what has
 * changed. A daemon that was started anew is asked again.
 */
export class Watcher implements vscode.Disposable {
  /** Watches by their ids, of the present daemon. */
  private readonly active = new Map<string, Watched>();
  private readonly wanted = new Set<Watched>();
  /** What the daemon told of a watch before its id was known. */
  private readonly early = new Map<string, ChangedParams[]>();
  private beginning = 0;
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
            void this.begin(w);
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
      await this.begin(w);
    }
  }

  private async begin(w: Watched): Promise<void> {
    const { path, tasks } = w.planned;
    this.beginning++;
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
      void vscode.window.showErrorMessage(`${vscode.workspace.asRelativePath(path)} cannot be watched: ${messageOf(error)}`);
    } finally {
      if (--this.beginning === 0) {
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
          this.log.warn(`${w.planned.path} is still watched: ${messageOf(error)}`);
        });
      }
    }
  }

  private changed(p: ChangedParams): void {
    const w = this.active.get(p.watchId);
    if (!w) {
      if (this.beginning > 0) {
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
