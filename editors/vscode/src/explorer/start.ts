import * as vscode from 'vscode';
import type { Connection } from '../daemon/connection';
import { messageOf } from '../daemon/errors';
import type { RunRequest } from '../model/request';
import type { RunTracker } from '../model/tracker';
import type { Runs } from '../services';

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
