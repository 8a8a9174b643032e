import type { Disposable, Event } from '../model/emitter';
import type { Methods, Notifications } from './protocol';

/**
 * How the daemon stands:
 * - idle: not started, as in a workspace that is not trusted;
 * - starting: the first start, or one after a restart that was asked for;
 * - running: it answers;
 * - restarting: it died, and is started again after a while;
 * - missing: no waza was found that is new enough;
 * - failed: it died too often, or could not be started.
 */
export type DaemonState = 'idle' | 'starting' | 'running' | 'restarting' | 'missing' | 'failed';

/** Ends a request. VS Code's cancellation tokens are of this shape. */
export interface Cancellation {
  readonly isCancellationRequested: boolean;
  onCancellationRequested(listener: () => void): Disposable;
}

/** What can be asked of a daemon and heard from it, whichever process it is. */
export interface Connection {
  /**
   * Sends a request. It waits while the daemon is starting, is rejected with
   * the daemon's error (which has code and data), or with a ConnectionLost when
   * the daemon is gone before it answers.
   */
  request<M extends keyof Methods>(method: M, params: Methods[M]['params'], token?: Cancellation): Promise<Methods[M]['result']>;
  /** The same for methods that Methods does not list. */
  request(method: string, params: object, token?: Cancellation): Promise<unknown>;

  /** Hears a notification, also after restarts, until disposed of. */
  onNotification<N extends keyof Notifications>(method: N, listener: (params: Notifications[N]) => void): Disposable;

  readonly state: DaemonState;
  readonly onDidChangeState: Event<DaemonState>;
}

/** A request that got no answer because the daemon is not there (any more). */
export class ConnectionLost extends Error {
  constructor(method: string, state: DaemonState) {
    super(`${method}: ${reasons[state]}`);
    this.name = 'ConnectionLost';
  }
}

const reasons: Record<DaemonState, string> = {
  idle: 'waza is not started, as this workspace is not trusted',
  starting: 'waza has not started yet',
  running: 'waza ended before it answered',
  restarting: 'waza ended before it answered, and is started again',
  missing: 'waza was not found',
  failed: 'waza cannot be started; see the output channel waza',
};
