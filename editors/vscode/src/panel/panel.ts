import * as vscode from 'vscode';
import type { Disposable } from '../daemon/emitter';
import { messageOf } from '../daemon/errors';
import type { PageData, PageParts } from '../model/page';
import type { RunEvent } from '../model/tracker';
import type { ResultsTarget, Services } from '../services';
import { act } from './actions';
import { addressOf, type FromPage, type PageState, type ToPage } from './messages';
import { documentOf, waitingDocument } from './page';
import { openGrader, openTask } from './places';
import { Refresher } from './refresher';

/** Type of the panel, by which VS Code restores it after a reload. */
export const viewType = 'waza.results';

/** Minimum time between two tallies of an active run. */
const tallyEveryMs = 150;

/**
 * One webview that shows a run. It stores no data: the page requests its data, and requests it
 * again when it becomes visible.
 */
export class ResultsPanel implements vscode.Disposable {
  /** The shown run, and the run it is compared with. */
  state: PageState;
  /** The data shown last, without the trials of its tasks. */
  data: PageData | undefined;
  private parts: PageParts | undefined;
  private address: string | undefined;
  private ready = false;
  /** The message to send as soon as the page is ready. */
  private pending: ToPage | undefined;
  private tallyTimer: NodeJS.Timeout | undefined;
  private readonly refresher: Refresher;
  private readonly disposables: Disposable[];
  private readonly gone = new vscode.EventEmitter<void>();
  readonly onDidDispose = this.gone.event;

  constructor(readonly panel: vscode.WebviewPanel, readonly services: Services, state: PageState) {
    this.state = state;
    this.refresher = new Refresher(() => this.fetch(), { onError: (error) => { this.problem(error); } });
    panel.webview.options = { enableScripts: true, localResourceRoots: [this.resource('dist'), this.resource('media')] };
    panel.iconPath = { light: this.resource('media/panel/icon-light.svg'), dark: this.resource('media/panel/icon-dark.svg') };
    this.disposables = [
      panel.onDidDispose(() => { this.dispose(); }),
      panel.webview.onDidReceiveMessage((message: FromPage) => { this.received(message); }),
      panel.onDidChangeViewState(() => { this.visibilityChanged(); }),
      services.tracker.onEvent((event) => { this.heard(event); }),
      services.daemon.onDidChangeState((now) => { if (now === 'running') { this.refresher.needNow(); } }),
    ];
    panel.webview.html = waitingDocument('Reading the run…');
    this.refresher.needNow();
  }

  /** Shows another run, or another place in the same run. */
  show(target: ResultsTarget, against?: string): void {
    const other = target.runId !== this.state.runId || against !== this.state.against;
    if (other) {
      this.state = { runId: target.runId, ...(against === undefined ? {} : { against }) };
    }
    this.address = target.taskId === undefined ? '' : addressOf(target.taskId, target.trial); // '' is the whole run
    this.panel.reveal(undefined, false);
    if (other || !this.ready) {
      this.refresher.needNow();
    } else {
      this.send({ type: 'go', address: this.address });
      this.address = undefined;
    }
  }

  dispose(): void {
    clearTimeout(this.tallyTimer);
    this.refresher.dispose();
    this.gone.fire();
    this.gone.dispose();
    vscode.Disposable.from(...this.disposables).dispose();
    this.panel.dispose();
  }

  /** Reports whether the run is active, as far as known. */
  get live(): boolean {
    const run = this.services.tracker.get(this.state.runId);
    return run ? !run.over : this.data?.run.status === 'running';
  }

  private resource(path: string): vscode.Uri {
    return vscode.Uri.joinPath(this.services.context.extensionUri, ...path.split('/'));
  }

  private received(message: FromPage): void {
    switch (message.type) {
      case 'ready':
        this.start();
        break;
      case 'trial':
        void this.trial(message.id, message.taskId, message.num);
        break;
      case 'openTask':
        void this.showErrors(() => openTask(this.services, this.data, message.taskId));
        break;
      case 'openGrader':
        void this.showErrors(() => openGrader(this.services, this.data, message.taskId, message.name));
        break;
      case 'action':
        void this.showErrors(() => act(this, message.action));
        break;
    }
  }

  private visibilityChanged(): void {
    if (!this.panel.visible) {
      this.ready = false; // the page is discarded, and reports when it is back
      this.refresher.rest();
    } else if (!this.parts) {
      this.refresher.needNow();
    }
  }

  /** The page is ready for messages. */
  private start(): void {
    this.ready = true;
    if (this.pending) {
      this.send(this.pending);
      this.pending = undefined;
      this.tally();
    } else {
      this.refresher.needNow();
    }
  }

  private heard(event: RunEvent): void {
    if (event.run.runId !== this.state.runId || !this.panel.visible) {
      return;
    }
    if (event.kind === 'complete' || event.kind === 'started') {
      this.tally();
      this.refresher.needNow();
    } else if (event.kind === 'progress') {
      this.tallyTimer ??= setTimeout(() => { this.tally(); }, tallyEveryMs);
      if (event.params.event === 'trial_complete' || event.params.event === 'task_complete') {
        this.refresher.need();
      }
    }
  }

  private tally(): void {
    clearTimeout(this.tallyTimer);
    this.tallyTimer = undefined;
    const run = this.services.tracker.get(this.state.runId);
    if (run && this.ready) {
      this.send({ type: 'tally', live: !run.over, tally: run.tally() });
    }
  }

  /** Requests the current data from the daemon, and shows it. */
  private async fetch(): Promise<void> {
    if (!this.panel.visible) {
      return;
    }
    const { runId, against } = this.state;
    const result = await this.services.daemon.request('run.page', {
      runId, ...(against === undefined ? {} : { against }), page: this.parts === undefined,
    });
    if (runId !== this.state.runId || against !== this.state.against) {
      return; // meanwhile another run was requested
    }
    if (result.page) {
      this.parts = result.page;
      this.ready = false;
      this.panel.webview.html = this.document(result.page);
    }
    this.remember(result.data);
    this.showData(result.data);
    await this.follow(result.data);
  }

  private showData(data: PageData): void {
    const message: ToPage = { type: 'show', data, live: this.live, ...(this.address === undefined ? {} : { address: this.address }) };
    this.address = undefined;
    if (this.ready) {
      this.send(message);
      this.tally();
    } else {
      this.pending = message;
    }
  }

  /** Keeps the part of the data that buttons need. */
  private remember(data: PageData): void {
    this.data = {
      run: data.run,
      tasks: data.tasks.map(({ id, task, name, file, role, verdict, ended, totalTrials, ms }) => ({
        id, name, ended, totalTrials, ms, ...(task === undefined ? {} : { task }), ...(file === undefined ? {} : { file }),
        ...(role === undefined ? {} : { role }), ...(verdict === undefined ? {} : { verdict }),
      })),
    };
    this.panel.title = data.run.suite.name || 'Results';
  }

  /** Also follows a run of another window or terminal. */
  private async follow(data: PageData): Promise<void> {
    const { tracker } = this.services;
    if (data.run.status === 'running' && (tracker.get(data.run.runId)?.over ?? true)) {
      await tracker.follow(data.run.runId, data.run.suite.path);
    }
  }

  private async trial(id: number, taskId: string, num: number): Promise<void> {
    try {
      const { trial, files, incomplete, cut } = await this.services.daemon.request('run.trial', { runId: this.state.runId, taskId, trial: num });
      this.send({ type: 'trial', id, trial: { ...trial, ...(files?.length ? { files } : {}), incomplete, cut } });
    } catch (error) {
      this.send({ type: 'trial', id, error: messageOf(error) });
    }
  }

  private async showErrors(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      void vscode.window.showErrorMessage(messageOf(error));
    }
  }

  private problem(error: unknown): void {
    const text = `Cannot show the run: ${messageOf(error)}`;
    if (this.ready) {
      this.send({ type: 'problem', text });
    } else {
      this.parts = undefined; // the page is gone; it is requested again with its data
      this.panel.webview.html = waitingDocument(text);
    }
  }

  private send(message: ToPage): void {
    void this.panel.webview.postMessage(message);
  }

  private document(parts: PageParts): string {
    const { webview } = this.panel;
    return documentOf(parts, {
      cspSource: webview.cspSource,
      script: webview.asWebviewUri(this.resource('dist/panel.js')).toString(),
      style: webview.asWebviewUri(this.resource('media/panel/panel.css')).toString(),
    });
  }
}
