import { useEffect, useState } from 'preact/hooks';
import { call, onSession, RPCError } from './rpc';

const PAUSE_MS = 1000;

export interface Polled<T> {
  /** Null until the first answer. */
  value: T | null;
  /** The error of the last request; empty without one. */
  problem: string;
  /** Requests the value at once. */
  again(): void;
}

/** The result of a method, requested every second while the page is visible. */
export function usePolled<T>(method: string): Polled<T> {
  const [state, set] = useState<{ value: T | null; problem: string }>({ value: null, problem: '' });
  const [again] = useState(() => ({ now: (): void => undefined }));
  useEffect(() => {
    let over = false;
    let asking = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      clearTimeout(timer);
      if (asking) return;
      asking = true;
      try {
        if (!document.hidden) {
          const value = await call<T>(method);
          if (!over) set({ value, problem: '' });
        }
      } catch (e) {
        // The top of the page already shows that the connection is lost.
        if (!over && e instanceof RPCError && e.code !== 0) set((s) => ({ value: s.value, problem: e.message }));
      }
      asking = false;
      if (!over) timer = setTimeout(() => void ask(), PAUSE_MS);
    };
    const look = (): void => void ask();
    again.now = look;
    document.addEventListener('visibilitychange', look);
    const end = onSession(look);
    look();
    return () => {
      over = true;
      clearTimeout(timer);
      end();
      document.removeEventListener('visibilitychange', look);
    };
  }, [method, again]);
  return { ...state, again: () => again.now() };
}
