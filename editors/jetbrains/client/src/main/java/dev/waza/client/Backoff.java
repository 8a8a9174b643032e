package dev.waza.client;

import java.time.Duration;

/**
 * How long to wait before a daemon that died is started again: twice as long each time, until one has
 * lived for a while. Not safe for several threads.
 */
final class Backoff {
  private final Duration first;
  private final int most;
  private final Duration stable;
  private int failures;

  /**
   * Describes the waiting.
   *
   * @param first the first wait
   * @param most how many failures in a row are borne
   * @param stable how long a daemon lives before its failures are forgotten
   */
  Backoff(Duration first, int most, Duration stable) {
    this.first = first;
    this.most = most;
    this.stable = stable;
  }

  /** Counts a daemon that lived so long and tells how long to wait; null when it is enough. */
  Duration failed(Duration lived) {
    failures = lived.compareTo(stable) < 0 ? failures + 1 : 1;
    return failures > most ? null : first.multipliedBy(1L << (failures - 1));
  }

  void reset() {
    failures = 0;
  }
}
