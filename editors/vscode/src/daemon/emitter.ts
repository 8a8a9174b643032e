/** Ends a subscription. Like VS Code's type, on which daemon/ and model/ must not depend. */
export interface Disposable {
  dispose(): void;
}

/** Subscribes a listener, like an event of VS Code. */
export type Event<T> = (listener: (value: T) => void) => Disposable;

/**
 * Notifies listeners in the order of their subscription. If a listener throws, the others are still
 * notified; the error goes to onError.
 */
export class Emitter<T> implements Disposable {
  private readonly listeners = new Set<{ hear: (value: T) => void }>();

  constructor(private readonly onError: (error: unknown) => void = rethrowLater) {}

  readonly event: Event<T> = (listener) => {
    const entry = { hear: listener };
    this.listeners.add(entry);
    return { dispose: () => void this.listeners.delete(entry) };
  };

  fire(value: T): void {
    for (const listener of [...this.listeners]) {
      try {
        listener.hear(value);
      } catch (error) {
        this.onError(error);
      }
    }
  }

  dispose(): void {
    this.listeners.clear();
  }
}

function rethrowLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
