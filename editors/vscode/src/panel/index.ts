import * as vscode from 'vscode';
import type { Results, ResultsTarget, Services } from '../services';
import type { PageState } from './messages';
import { ResultsPanel, viewType } from './panel';

/** Creates the results panel, which shows all results. */
export function createResults(services: Services): Results {
  const results = new OnePanel(services);
  services.context.subscriptions.push(vscode.window.registerWebviewPanelSerializer(viewType, results));
  return results;
}

/** There is at most one panel, which shows one run after another. */
class OnePanel implements Results, vscode.WebviewPanelSerializer<PageState> {
  private panel: ResultsPanel | undefined;

  constructor(private readonly services: Services) {}

  async show(target?: ResultsTarget): Promise<void> {
    const wanted = target ?? await this.newest();
    if (!wanted) {
      void vscode.window.showInformationMessage('There is no run of a suite of this workspace yet.');
      return;
    }
    this.open(wanted);
  }

  compare(base: string, run: string): Promise<void> {
    this.open({ runId: run }, base);
    return Promise.resolve();
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: PageState | undefined): Promise<void> {
    if (this.panel || typeof state?.runId !== 'string') {
      panel.dispose();
    } else {
      this.adopt(new ResultsPanel(panel, this.services, state));
    }
    return Promise.resolve();
  }

  private open(target: ResultsTarget, against?: string): void {
    if (!this.panel) {
      const panel = vscode.window.createWebviewPanel(viewType, 'Results', vscode.ViewColumn.Active, { enableFindWidget: true });
      this.adopt(new ResultsPanel(panel, this.services, { runId: target.runId, ...(against === undefined ? {} : { against }) }));
    }
    this.panel?.show(target, against ?? (this.panel.state.runId === target.runId ? this.panel.state.against : undefined));
  }

  private adopt(panel: ResultsPanel): void {
    this.panel = panel;
    panel.onDidDispose(() => {
      if (this.panel === panel) {
        this.panel = undefined;
      }
    });
  }

  private async newest(): Promise<ResultsTarget | undefined> {
    const own = this.services.tracker.runs.at(-1);
    if (own) {
      return { runId: own.runId };
    }
    const { runs } = await this.services.daemon.request('run.list', { limit: 200 });
    const folders = vscode.workspace.workspaceFolders ?? [];
    const run = runs.find((r) => folders.some((f) => r.suite.path.startsWith(`${f.uri.fsPath}/`))) ?? (folders.length ? undefined : runs[0]);
    return run && { runId: run.runId };
  }
}
