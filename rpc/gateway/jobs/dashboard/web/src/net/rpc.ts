import { Socket, wsAddress } from './socket';
import { Store } from './store';

export class RPCError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

interface Message {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: { reason?: string; message?: string } };
}

interface Call {
  text: string;
  resolve(result: never): void;
  reject(e: Error): void;
}

const calls = new Map<number, Call>();
const listeners = new Map<string, Set<(params: never) => void>>();
const sessions = new Set<() => void>();
let next = 1;

/** True while requests can be sent. A server that refuses the token closes the connection. */
export const connected = new Store(false);

export const socket = new Socket((t) => [wsAddress('/rpc'), ['jsonrpc', `bearer.${t.access}`]], {
  open() {
    connected.set(true);
    send('ping', {}).catch(() => undefined); // keeps the connection active on every page
    for (const f of [...sessions]) f();
  },
  message(text) {
    const m = JSON.parse(text) as Message;
    if (m.method !== undefined) {
      for (const f of listeners.get(m.method) ?? []) f(m.params as never);
      return;
    }
    const c = calls.get(m.id ?? 0);
    if (!c) return;
    calls.delete(m.id ?? 0);
    if (m.error) c.reject(new RPCError(m.error.data?.reason ?? m.error.message, m.error.code));
    else c.resolve(m.result as never);
  },
  closed() {
    connected.set(false);
    const lost = [...calls.values()];
    calls.clear();
    for (const c of lost) c.reject(new RPCError('lost the connection to the server', 0));
  },
});

function send<T>(method: string, params: object): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const id = next++;
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    calls.set(id, { text, resolve, reject });
    if (!socket.send(text)) {
      calls.delete(id);
      reject(new RPCError('the server is not reachable', 0));
    }
  });
}

/** Calls a method when the server is connected. It rejects with an [RPCError]. */
export function call<T>(method: string, params: object = {}): Promise<T> {
  if (connected.value) return send<T>(method, params);
  return new Promise<T>((resolve, reject) => {
    const late = setTimeout(() => {
      end();
      reject(new RPCError('the server is not reachable', 0));
    }, 60_000);
    const end = onSession(() => {
      clearTimeout(late);
      end();
      send<T>(method, params).then(resolve, reject);
    });
  });
}

/** Calls f for each notification of a method, until the returned function is called. */
export function on<T>(method: string, f: (params: T) => void): () => void {
  const set = listeners.get(method) ?? new Set();
  listeners.set(method, set);
  set.add(f as (params: never) => void);
  return () => set.delete(f as (params: never) => void);
}

/** Calls f for each new connection; subscriptions end with their connection. */
export function onSession(f: () => void): () => void {
  sessions.add(f);
  return () => sessions.delete(f);
}
