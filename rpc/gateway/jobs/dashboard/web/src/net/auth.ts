import { Store } from './store';

/** Tokens of this origin. Without a refresh token, the user pasted the access token. */
export interface Tokens {
  access: string;
  refresh: string;
}

const KEY = 'waza.tokens';
const REFRESH_MS = 12 * 60_000;

function load(): Tokens | null {
  try {
    const t = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Tokens | null;
    return t && typeof t.access === 'string' && typeof t.refresh === 'string' ? t : null;
  } catch {
    return null;
  }
}

/** The tokens that all tabs share; null when the user is not signed in. */
export const tokens = new Store<Tokens | null>(load());

function save(t: Tokens | null): void {
  try {
    if (t) localStorage.setItem(KEY, JSON.stringify(t));
    else localStorage.removeItem(KEY);
  } catch {
    // this tab still has them
  }
  tokens.set(t);
}

window.addEventListener('storage', (e) => {
  if (e.key === KEY) tokens.set(load());
});

export function signOut(): void {
  save(null);
}

async function post(path: string, body: unknown, access?: string): Promise<Response> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (access) headers.Authorization = `Bearer ${access}`;
  return fetch(path, { method: 'POST', headers, body: JSON.stringify(body), cache: 'no-store' });
}

interface Pair {
  access_token: string;
  refresh_token: string;
}

async function take(r: Response): Promise<void> {
  const pair = (await r.json()) as Pair;
  save({ access: pair.access_token, refresh: pair.refresh_token });
}

async function problem(r: Response): Promise<string> {
  const body = (await r.json().catch(() => ({}))) as { error?: string };
  return body.error ?? `the server answered ${r.status}`;
}

/** Exchanges a one-time code for tokens. Returns an error, or an empty string. */
export async function exchange(code: string): Promise<string> {
  try {
    const r = await post('/api/auth/exchange', { code });
    if (!r.ok) return await problem(r);
    await take(r);
    return '';
  } catch {
    return 'the server is not reachable';
  }
}

/** Signs in with an access token. Returns an error, or an empty string. */
export async function signIn(access: string): Promise<string> {
  try {
    const r = await post('/api/auth/page', {}, access);
    if (!r.ok) return await problem(r);
    save({ access, refresh: '' });
    return '';
  } catch {
    return 'the server is not reachable';
  }
}

let refreshing: Promise<boolean> | null = null;

/**
 * Refreshes the tokens, once for all concurrent callers and, if the browser has locks, once
 * for all tabs. Returns false when the server is not reachable, and when the user must sign
 * in again; the store is then null.
 */
export function refresh(): Promise<boolean> {
  refreshing ??= exclusive().finally(() => (refreshing = null));
  return refreshing;
}

async function exclusive(): Promise<boolean> {
  const seen = tokens.value?.access;
  const once = async (): Promise<boolean> => {
    const now = load() ?? tokens.value;
    if (now && now.access !== seen) {
      tokens.set(now); // another tab has refreshed them
      return true;
    }
    return renew(now);
  };
  return 'locks' in navigator ? navigator.locks.request('waza.refresh', once) : once();
}

async function renew(now: Tokens | null): Promise<boolean> {
  if (!now) return false;
  try {
    const r = now.refresh
      ? await post('/api/auth/refresh', { refresh_token: now.refresh })
      : await post('/api/auth/page', {}, now.access);
    if (r.status === 401) save(null);
    if (!r.ok) return false;
    if (now.refresh) await take(r);
    return true;
  } catch {
    return false;
  }
}

/** Refreshes the tokens, and the cookie for pages of runs, while the page is open. */
export function keepFresh(): void {
  const t = tokens.value;
  if (t) post('/api/auth/page', {}, t.access).catch(() => undefined); // the next connection detects the failure
  setInterval(() => void refresh(), REFRESH_MS);
}
