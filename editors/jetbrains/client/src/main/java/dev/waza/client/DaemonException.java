package dev.waza.client;

import java.io.IOException;

/** There is no usable daemon. The message explains why and, if known, what to do. */
public final class DaemonException extends IOException {
  private static final long serialVersionUID = 1;

  private final boolean hopeless;

  DaemonException(String message, boolean hopeless, Throwable cause) {
    super(message, cause);
    this.hopeless = hopeless;
  }

  /**
   * Returns whether another start would fail in the same way: the daemon is missing, not waza, or
   * too old.
   */
  public boolean isHopeless() {
    return hopeless;
  }
}
