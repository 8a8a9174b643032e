import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props {
  count: number;
  height: number; // of a row, in pixels
  label: string;
  role?: 'grid' | 'table';
  columns?: number;
  head?: ComponentChildren;
  row(i: number): ComponentChildren;
  /** The row to keep in view. */
  at?: number;
  active?: string;
  onKeyDown?(e: KeyboardEvent): void;
  class?: string;
}

const AROUND = 8;

/** A table that renders only the visible rows. */
export function Virtual(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const frame = useRef(0);
  const [view, setView] = useState({ top: 0, height: 600 });

  const look = (): void => {
    frame.current = 0;
    const b = box.current;
    if (b) setView((v) => (v.top === b.scrollTop && v.height === b.clientHeight ? v : { top: b.scrollTop, height: b.clientHeight }));
  };
  const soon = (): void => {
    frame.current ||= requestAnimationFrame(look);
  };
  useLayoutEffect(() => {
    look();
    const watch = new ResizeObserver(soon);
    if (box.current) watch.observe(box.current);
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b || p.at === undefined || p.at < 0) return;
    const head = b.querySelector<HTMLElement>('.vhead')?.offsetHeight ?? 0;
    const top = p.at * p.height;
    if (top < b.scrollTop) b.scrollTop = top;
    else if (top + p.height + head > b.scrollTop + b.clientHeight) b.scrollTop = top + p.height + head - b.clientHeight;
  }, [p.at, p.height]);

  const first = Math.max(0, Math.floor(view.top / p.height) - AROUND);
  const last = Math.min(p.count, Math.ceil((view.top + view.height) / p.height) + AROUND);
  const rows: JSX.Element[] = [];
  for (let i = first; i < last; i++) {
    rows.push(
      <div key={i} role="row" aria-rowindex={i + 2} class="vrow" style={{ top: `${i * p.height}px`, height: `${p.height}px` }}>
        {p.row(i)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class={`virtual ${p.class ?? ''}`}
      role={p.role ?? 'table'}
      tabIndex={0}
      aria-label={p.label}
      aria-rowcount={p.count + 1}
      aria-colcount={p.columns}
      aria-activedescendant={p.active}
      onScroll={soon}
      onKeyDown={p.onKeyDown}
    >
      {p.head && (
        <div role="row" aria-rowindex={1} class="vhead">
          {p.head}
        </div>
      )}
      <div class="vrows" role="rowgroup" style={{ height: `${p.count * p.height}px` }}>
        {rows}
      </div>
    </div>
  );
}
