import { Store } from './store';

type Kind = 'problem' | 'done';

interface Notice {
  id: number;
  text: string;
  kind: Kind;
}

export const notices = new Store<Notice[]>([]);
let last = 0;

export function dismiss(id: number): void {
  notices.set(notices.value.filter((n) => n.id !== id));
}

/** Shows a text for some seconds. */
export function notice(text: string, kind: Kind = 'done'): void {
  const id = ++last;
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  notices.set([...notices.value.slice(-3), { id, text: sentence, kind }]);
  setTimeout(() => dismiss(id), kind === 'problem' ? 12_000 : 5000);
}

/** Shows the error of a call. */
export function complain(e: unknown): void {
  notice(e instanceof Error ? e.message : String(e), 'problem');
}
