import { refresh, tokens, type Tokens } from './auth';
import { Store } from './store';

export type Standing = 'connecting' | 'open' | 'waiting' | 'crowded' | 'closed';

export interface Handlers {
  open(): void;
  message(text: string): void;
  closed(): void;
}

const LEAST_MS = 1000;
const MOST_MS = 30_000;
const UNAUTHENTICATED = 4001;
const CROWDED = 4008;

/**
 * A connection to this page's server that reconnects when it breaks: after 1 to 30 seconds
 * with jitter, and at once when the tab becomes visible or online again.
 */
export class Socket {
  readonly standing = new Store<Standing>('connecting');
  private ws: WebSocket | null = null;
  private timer = 0;
  private delay = LEAST_MS;
  private stopped = false;
  private renewed = false;

  constructor(
    private readonly address: (t: Tokens) => [url: string, protocols: string[]],
    private readonly handlers: Handlers,
  ) {
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.hurry();
    });
    window.addEventListener('online', () => this.hurry());
    tokens.watch(() => {
      if (tokens.value) this.hurry();
      else this.stop();
    });
  }

  /** Connects now unless it is connected. */
  hurry(): void {
    if (this.ws || !tokens.value) return;
    this.stopped = false;
    clearTimeout(this.timer);
    this.timer = 0;
    this.connect();
  }

  send(text: string): boolean {
    if (this.ws?.readyState !== WebSocket.OPEN) return false;
    this.ws.send(text);
    return true;
  }

  private stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.ws?.close();
  }

  private connect(): void {
    const t = tokens.value;
    if (!t) return;
    const [url, protocols] = this.address(t);
    if (this.standing.value !== 'crowded') this.standing.set('connecting');
    const ws = new WebSocket(url, protocols);
    this.ws = ws;
    let spoken = false;
    const established = (): void => {
      if (spoken) return;
      spoken = true;
      this.delay = LEAST_MS;
      this.renewed = false;
      this.standing.set('open');
    };
    ws.onopen = () => this.handlers.open();
    ws.onmessage = (e) => {
      established(); // a refusing server sends no message
      this.handlers.message(e.data as string);
    };
    ws.onclose = (e) => {
      this.ws = null;
      this.handlers.closed();
      this.again(e.code);
    };
  }

  private again(code: number): void {
    if (this.stopped || !tokens.value) {
      this.standing.set('closed');
      return;
    }
    if (code === UNAUTHENTICATED && !this.renewed) {
      this.renewed = true;
      this.standing.set('connecting');
      void refresh().then((ok) => (ok ? this.hurry() : this.wait()));
      return;
    }
    this.standing.set(code === CROWDED ? 'crowded' : 'waiting');
    this.wait();
  }

  private wait(): void {
    if (this.timer || this.ws || this.stopped) return;
    const wait = this.delay / 2 + (Math.random() * this.delay) / 2 + 500 * Math.random();
    this.delay = Math.min(MOST_MS, this.delay * 2);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.renewed = false;
      if (!this.ws) this.connect();
    }, Math.max(LEAST_MS, wait));
  }
}

/** Returns the address of a path of this page's server. */
export function wsAddress(path: string): string {
  return `${location.protocol === 'https:' ? 'wss:' : 'ws:'}//${location.host}${path}`;
}
