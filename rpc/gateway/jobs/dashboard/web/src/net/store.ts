import { useEffect, useState } from 'preact/hooks';

/** A value that components watch. Changes within one frame cause one render. */
export class Store<T> {
  private watchers = new Set<() => void>();
  private due = false;

  constructor(public value: T) {}

  set(value: T): void {
    this.value = value;
    this.touch();
  }

  /** Reports that the value has changed in place. */
  touch(): void {
    if (this.due) return;
    this.due = true;
    const report = (): void => {
      if (!this.due) return;
      this.due = false;
      for (const f of [...this.watchers]) f();
    };
    requestAnimationFrame(report);
    setTimeout(report, 250); // background tabs get no frames
  }

  watch(f: () => void): () => void {
    this.watchers.add(f);
    return () => this.watchers.delete(f);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, render] = useState(0);
  useEffect(() => {
    render((n) => n + 1); // it may have changed since the last render
    return store.watch(() => render((n) => n + 1));
  }, [store]);
  return store.value;
}
