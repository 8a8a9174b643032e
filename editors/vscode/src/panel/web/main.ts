// The page of the results panel: it shows the daemon's report, forwards the report's
// requests, and keeps the reader's choices.

import type { PageData } from '../../model/page';
import type { FromPage, PageState, ToPage } from '../messages';
import { Bar } from './bar';

interface Report {
  state(): { address: string };
  go(address: string): void;
}

interface Host {
  loadTrial(taskId: string, num: number): Promise<unknown>;
  openTask(taskId: string): void;
  openGrader(taskId: string, name: string): void;
  address: string;
  moved(address: string): void;
  state: unknown;
  signal: AbortSignal;
  themed: true;
}

declare function acquireVsCodeApi(): {
  postMessage(message: FromPage): void;
  getState(): PageState | undefined;
  setState(state: PageState): void;
};

/** Declared by the report's script, which is before this one. */
declare function wazaReport(data: PageData, host: Host): Report;

const code = acquireVsCodeApi();
const bar = new Bar((action) => { code.postMessage({ type: 'action', action }); });
let shown: { runId: string; against: string | undefined; report: Report; end: AbortController } | undefined;

/** Requested trials, by the number of the request. */
const questions = new Map<number, { answer: (trial: unknown) => void; refuse: (error: Error) => void }>();
let asked = 0;

function loadTrial(taskId: string, num: number): Promise<unknown> {
  asked += 1;
  const id = asked;
  return new Promise((answer, refuse) => {
    questions.set(id, { answer, refuse });
    code.postMessage({ type: 'trial', id, taskId, num });
  });
}

function answer(message: ToPage & { type: 'trial' }): void {
  const question = questions.get(message.id);
  questions.delete(message.id);
  if (message.error === undefined) {
    question?.answer(message.trial);
  } else {
    question?.refuse(new Error(message.error));
  }
}

/**
 * Shows newer data, or another run. For the same run, the reader's choices, the focus and the
 * scroll position stay.
 */
function show(data: PageData, live: boolean, address: string | undefined): void {
  const { runId } = data.run;
  const same = shown?.runId === runId;
  const state = same ? shown?.report.state() : savedState(runId);
  const focus = same ? focusNow() : undefined;
  const top = scrollY;
  shown?.end.abort();
  if (!same) {
    closeDialogs();
    scrollTo(0, 0);
  }
  const end = new AbortController();
  const report = wazaReport(data, {
    loadTrial,
    openTask: (taskId) => { code.postMessage({ type: 'openTask', taskId }); },
    openGrader: (taskId, name) => { code.postMessage({ type: 'openGrader', taskId, name }); },
    address: '', moved: remember, state, signal: end.signal, themed: true,
  });
  shown = { runId, against: data.run.against?.runId, report, end };
  document.body.classList.remove('loading');
  bar.show(data, live);
  if (address !== undefined) {
    report.go(address);
  } else if (same) {
    scrollTo(scrollX, top);
    focus?.();
  }
  remember();
}

function savedState(runId: string): unknown {
  const saved = code.getState();
  return saved?.runId === runId ? saved.report : undefined;
}

/** Saves the state for a reload of the window. */
function remember(): void {
  if (shown) {
    const { runId, against, report } = shown;
    code.setState({ runId, ...(against === undefined ? {} : { against }), report: report.state() });
  }
}

function closeDialogs(): void {
  for (const dialog of document.querySelectorAll('dialog[open]')) {
    (dialog as HTMLDialogElement).close();
  }
}

/** Attributes that identify a button after it was recreated. */
const marks = ['id', 'data-filter', 'data-sort', 'data-trial-row', 'data-task'];

/** Returns a function that restores the current focus. */
function focusNow(): (() => void) | undefined {
  const element = document.activeElement;
  const mark = marks.find((name) => element?.hasAttribute(name));
  if (!element || mark === undefined) {
    return undefined;
  }
  const selector = `[${mark}="${CSS.escape(element.getAttribute(mark) ?? '')}"]`;
  return () => {
    if (!element.isConnected) {
      document.querySelector<HTMLElement>(selector)?.focus({ preventScroll: true });
    }
  };
}

/** Makes the report light or dark like VS Code. */
function takeTheme(): void {
  const dark = document.body.matches('.vscode-dark, .vscode-high-contrast:not(.vscode-high-contrast-light)');
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
}

/** Moves the tasks first, because they matter most in an editor. The other parts of the report follow. */
function tasksFirst(): void {
  const tasks = document.getElementById('tasks');
  tasks?.after(...['measures', 'distributions'].map((id) => document.getElementById(id)).filter((e) => e !== null));
}

function problem(text: string): void {
  const place = document.getElementById('problem');
  if (place) {
    place.textContent = text;
    place.hidden = text === '';
  }
}

addEventListener('message', (event: MessageEvent<ToPage>) => {
  const message = event.data;
  switch (message.type) {
    case 'show':
      problem('');
      show(message.data, message.live, message.address);
      break;
    case 'tally':
      bar.tally(message.live, message.tally);
      break;
    case 'go':
      shown?.report.go(message.address);
      break;
    case 'trial':
      answer(message);
      break;
    case 'problem':
      problem(message.text);
      break;
  }
});
// Filters and open rows report no changes, so the state is saved when the page is left.
addEventListener('pagehide', remember);
document.addEventListener('visibilitychange', remember);
document.addEventListener('click', () => { setTimeout(remember); });
new MutationObserver(takeTheme).observe(document.body, { attributeFilter: ['class'] });
setInterval(() => { bar.again(); }, 30_000);
takeTheme();
tasksFirst();
code.postMessage({ type: 'ready' });
