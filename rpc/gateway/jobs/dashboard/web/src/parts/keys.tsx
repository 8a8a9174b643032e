import { useEffect, useRef } from 'preact/hooks';

const KEYS: [key: string, text: string][] = [
  ['/', 'Search'],
  ['g', 'To the table'],
  ['↑ ↓ ← →', 'Move in the table'],
  ['Enter', 'Open what is chosen'],
  ['Space', 'In the runs: choose a run to compare'],
  ['t', 'Theme: system, light, dark'],
  ['?', 'This list'],
  ['Esc', 'Close, or leave the search'],
];

/** The keys of the page. */
export function Keys({ open, close, pages }: { open: boolean; close(): void; pages: [string, string, string][] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      <div class="line">
        <h2 id="keys-title">Keys</h2>
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
