import * as vscode from 'vscode';
import type { Results, ResultsTarget, Services } from '../services';

/** Makes the results panel; everything that shows results calls what it answers. */
export function createResults(services: Services): Results {
  return new ReportPanel(services);
}

/** Shows a run's HTML report. */
class ReportPanel implements Results {
  constructor(private readonly services: Services) {}

  async show(target?: ResultsTarget): Promise<void> {
    const runId = target?.runId ?? this.services.tracker.runs.at(-1)?.runId;
    if (runId === undefined) {
      void vscode.window.showInformationMessage('There is no run yet.');
      return;
    }
    const report = await this.services.daemon.request('run.export', { runId, format: 'html' });
    const panel = vscode.window.createWebviewPanel('waza.results', runId, vscode.ViewColumn.Active, { enableScripts: true });
    panel.webview.html = report.content ?? '';
  }

  async compare(base: string, run: string): Promise<void> {
    await this.services.daemon.request('run.compare', { runIds: [base, run] });
  }
}
