import type { Disposable, Event } from './emitter';
import type { Methods, Notifications } from './protocol';

/**
 * State of the daemon:
 * - idle: not started, as in an untrusted workspace;
 * - starting: the first start, or a restart that the user asked for;
 * - running: it answers requests;
 * - restarting: it died and will restart after a pause;
 * - missing: no waza was found, or none that is new enough;
 * - failed: it died too often or could not be started.
 */
export type DaemonState = 'idle' | 'starting' | 'running' | 'restarting' | 'missing' | 'failed';

/** Ends a request. VS Code's cancellation tokens have this shape. */
export interface Cancellation {
  readonly isCancellationRequested: boolean;
  onCancellationRequested(listener: () => void): Disposable;
}

/** Requests to a daemon and notifications from it, whichever process it is. */
export interface Connection {
  /**
   * Sends a request. It waits while the daemon is starting. It is rejected with the daemon's error,
   * which has code and data, or with ConnectionLost if the daemon ends before it answers.
   */
  request<M extends keyof Methods>(method: M, params: Methods[M]['params'], token?: Cancellation): Promise<Methods[M]['result']>;
  /** Like the above, for methods that Methods does not list. */
  request(method: string, params: object, token?: Cancellation): Promise<unknown>;

  /** Subscribes to a notification, also across restarts, until disposed. */
  onNotification<N extends keyof Notifications>(method: N, listener: (params: Notifications[N]) => void): Disposable;

  readonly state: DaemonState;
  readonly onDidChangeState: Event<DaemonState>;
}

/** Error of a request without an answer, because the daemon does not run (any more). */
export class ConnectionLost extends Error {
  constructor(method: string, state: DaemonState) {
    super(`${method}: ${reasons[state]}`);
    this.name = 'ConnectionLost';
  }
}

const reasons: Record<DaemonState, string> = {
  idle: 'waza is not started, because this workspace is not trusted',
  starting: 'waza has not started yet',
  running: 'waza ended before it answered',
  restarting: 'waza ended before it answered, and restarts',
  missing: 'waza was not found',
  failed: 'waza could not be started; see the output channel waza',
};
