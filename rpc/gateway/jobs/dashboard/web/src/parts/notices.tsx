import { Store, useStore } from '../net/store';

type Kind = 'problem' | 'done';

interface Notice {
  id: number;
  text: string;
  kind: Kind;
}

const notices = new Store<Notice[]>([]);
let last = 0;

function dismiss(id: number): void {
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

export function Notices() {
  const list = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {list.map((n) => (
        <div key={n.id} class={`notice ${n.kind}`}>
          <span>{n.text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(n.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
