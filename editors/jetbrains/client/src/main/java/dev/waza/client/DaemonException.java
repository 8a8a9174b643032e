package dev.waza.client;

import java.io.IOException;

/** There is no daemon to talk to; the message tells a person why and, where that is known, what to do. */
public final class DaemonException extends IOException {
  private static final long serialVersionUID = 1;

  private final boolean hopeless;

  DaemonException(String message, boolean hopeless, Throwable cause) {
    super(message, cause);
    this.hopeless = hopeless;
  }

  /** Says whether starting the daemon once more would end the same: it is missing, or no waza, or too old. */
  public boolean isHopeless() {
    return hopeless;
  }
}
