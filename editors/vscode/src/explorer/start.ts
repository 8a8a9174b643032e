import * as vscode from 'vscode';
import { ConnectionLost, type Connection } from '../daemon/connection';
import { codes } from '../daemon/protocol';
import type { RunTracker } from '../model/tracker';
import type { RunRequest, Runs } from '../services';

/** Number of runs to search for the suite of a run: the maximum of a list of runs. */
const mostListed = 10_000;

/** Starts and ends runs with the tracker, and shows errors to the user. */
export class RunStarter implements Omit<Runs, 'run'> {
  constructor(
    private readonly daemon: Connection,
    private readonly tracker: RunTracker,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  start(request: RunRequest, origin?: unknown): Promise<string | undefined> {
    return this.showErrors(async () => {
      const { tasks, trial, ...options } = request;
      const started = tasks && tasks.length > 0
        ? await this.tracker.runTasks({ ...options, tasks, ...(trial === undefined ? {} : { trial }) }, origin)
        : await this.tracker.runSuite(options, origin);
      for (const d of started.diagnostics ?? []) {
        this.log.warn(`${request.path}: ${d.message}`);
      }
      return started.runId;
    });
  }

  resume(runId: string): Promise<string | undefined> {
    return this.showErrors(async () => (await this.tracker.resume(runId, await this.pathOf(runId))).runId);
  }

  async cancel(runId?: string): Promise<void> {
    const ids = runId === undefined ? this.tracker.running.map((run) => run.runId) : [runId];
    await this.showErrors(() => Promise.all(ids.map((id) => this.tracker.cancel(id))));
  }

  /** Returns the suite of a run, under which the Test Explorer shows it. */
  private async pathOf(runId: string): Promise<string | undefined> {
    const known = this.tracker.get(runId)?.path;
    if (known !== undefined) {
      return known;
    }
    const { runs } = await this.daemon.request('run.list', { limit: mostListed });
    return runs.find((run) => run.runId === runId)?.suite.path;
  }

  private async showErrors<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const message = messageOf(error);
      this.log.error(message);
      void vscode.window.showErrorMessage(message, 'Show Output').then((choice) => {
        if (choice !== undefined) {
          this.log.show();
        }
      });
      return undefined;
    }
  }
}

/** Returns the text to show for an error of the daemon. */
export function messageOf(error: unknown): string {
  if (error instanceof ConnectionLost) {
    return error.message;
  }
  const e = error as { code?: number; message?: string; data?: { errors?: string[]; reason?: string } };
  const message = e.message ?? String(error);
  const [first, ...more] = e.code === codes.validationFailed ? e.data?.errors ?? [] : [];
  if (first !== undefined) {
    return `The suite is invalid: ${first}${more.length > 0 ? ` (and ${more.length} more)` : ''}`;
  }
  const reason = e.data?.reason;
  return reason === undefined || message.includes(reason) ? message : `${message}: ${reason}`;
}
