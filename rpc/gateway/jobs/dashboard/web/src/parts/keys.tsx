import { useEffect, useRef } from 'preact/hooks';

const KEYS: [key: string, text: string][] = [
  ['/', 'Search'],
  ['g', 'Go to the table'],
  ['↑ ↓ ← →', 'Move in the table'],
  ['Enter', 'Open the selection'],
  ['Space', 'In the list of runs: select a run to compare'],
  ['t', 'Theme: system, light, dark'],
  ['?', 'Show this list'],
  ['Esc', 'Close, or leave the search'],
];

/** The keyboard shortcuts of the page. */
export function Keys({ open, close, pages }: { open: boolean; close(): void; pages: [string, string, string][] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      <div class="line">
        <h2 id="keys-title">Keyboard shortcuts</h2>
        <span class="grow" />
        <button type="button" onClick={close}>Close</button>
      </div>
      <dl class="keys">
        {[...pages.map(([, title, key]): [string, string] => [key, title]), ...KEYS].map(([key, text]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
