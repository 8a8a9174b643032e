/** What ends a subscription. Like VS Code's, which the parts below it must not know. */
export interface Disposable {
  dispose(): void;
}

/** Subscribes a listener, as an event of VS Code does. */
export type Event<T> = (listener: (value: T) => void) => Disposable;

/**
 * Tells listeners in the order in which they came. A listener that throws does
 * not keep the others from hearing; what it threw goes to onError.
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
