// The bar above the report: the shown run, the buttons for it, and its progress while
// it is active.

import type { TrialTally } from '../../model/run';
import { agoText } from '../../model/format';
import type { PageData } from '../../model/page';
import type { Action } from '../messages';
import { icons } from './icons';

type Attributes = Record<string, string>;

export class Bar {
  private readonly place = required('bar');
  private readonly fill = element('div', { class: 'fill' });
  private readonly failedPart = element('div', { class: 'fill bad' });
  private readonly counts = element('span', { class: 'counts', role: 'status' });
  private progress: HTMLElement | undefined;
  private last: { data: PageData; live: boolean } | undefined;

  constructor(private readonly act: (action: Action) => void) {}

  /** Shows the buttons for a run. The button in focus keeps the focus. */
  show(data: PageData, live: boolean): void {
    this.last = { data, live };
    const { run } = data;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset['action'] : undefined;
    const failed = data.tasks.some((t) => (t.role ?? 'task') === 'task' && (t.verdict === 'failed' || t.verdict === 'timeout' || t.verdict === 'error'));
    const resumable = run.status === 'interrupted' || run.status === 'cancelled' || run.status === 'failed';
    this.progress = element('div', { class: 'progress', 'aria-hidden': 'true' }, this.fill, this.failedPart);
    this.place.replaceChildren(
      element('div', { class: 'which' },
        this.button('pick', 'Choose a run', 'history', `${agoText(run.startedAt)}${run.config.model ? ` · ${run.config.model}` : ''}`, true),
        ...this.comparison(data),
        this.counts),
      element('div', { class: 'buttons' },
        ...(live ? [this.button('cancel', 'Cancel the run', 'stop')] : []),
        ...(!live && resumable ? [this.button('resume', 'Resume the run', 'resume')] : []),
        ...(!live && failed ? [this.button('failed', 'Run only failed tasks', 'rerunFailed')] : []),
        ...(live ? [] : [this.button('again', 'Run again', 'rerun')]),
        this.button('browser', 'Open in the browser', 'browser'),
        this.button('export', 'Export as…', 'export')),
      this.progress,
    );
    this.setLive(live);
    if (focused !== undefined) {
      this.place.querySelector<HTMLElement>(`[data-action="${focused}"]`)?.focus({ preventScroll: true });
    }
  }

  /** Updates the relative times. */
  again(): void {
    if (this.last) {
      this.show(this.last.data, this.last.live);
    }
  }

  /** Shows the progress of the run. */
  tally(live: boolean, t: TrialTally): void {
    this.last &&= { ...this.last, live };
    const total = Math.max(1, t.total);
    const bad = t.failed + t.errors;
    this.fill.style.width = `${(100 * (t.done - bad)) / total}%`;
    this.failedPart.style.width = `${(100 * bad) / total}%`;
    this.counts.textContent = [
      `${t.done}/${t.total} trials`, t.failed && `${t.failed} failed`, t.errors && `${t.errors} in error`,
    ].filter(Boolean).join(' · ');
    this.setLive(live);
  }

  private setLive(live: boolean): void {
    this.place.classList.toggle('live', live);
    this.counts.hidden = !live;
  }

  private comparison({ run }: PageData): HTMLElement[] {
    if (!run.against) {
      return [this.button('compare', 'Compare with another run', 'compare', 'Compare…', true)];
    }
    const model = run.against.model && run.against.model !== run.config.model ? ` · ${run.against.model}` : '';
    return [
      this.button('compare', 'Compare with another run', 'compare', `with ${agoText(run.against.startedAt)}${model}`, true),
      this.button('alone', 'Do not compare', 'close'),
    ];
  }

  private button(action: Action, title: string, icon: keyof typeof icons, text?: string, drop = false): HTMLElement {
    const button = element('button', { type: 'button', class: drop ? 'drop' : 'icon', title, 'aria-label': text ? `${title}: ${text}` : title, 'data-action': action },
      drawing(icons[icon]), ...(text === undefined ? [] : [element('span', {}, text)]), ...(drop ? [drawing(icons.down, 'chevron')] : []));
    button.addEventListener('click', () => { this.act(action); });
    return button;
  }
}

function required(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no element #${id}`);
  }
  return found;
}

function element(name: string, attributes: Attributes, ...children: (Element | string)[]): HTMLElement {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawing(path: string, kind = 'sign'): SVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', kind);
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}
