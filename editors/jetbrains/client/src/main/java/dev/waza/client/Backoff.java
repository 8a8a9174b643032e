package dev.waza.client;

import java.time.Duration;

/**
 * Computes the wait before a daemon that died restarts: it doubles each time, until a daemon has
 * lived for a while. Not thread-safe.
 */
final class Backoff {
  private final Duration first;
  private final int most;
  private final Duration stable;
  private int failures;

  /**
   * Creates a backoff.
   *
   * @param first the first wait
   * @param most maximum number of consecutive failures
   * @param stable how long a daemon must live to reset the failures
   */
  Backoff(Duration first, int most, Duration stable) {
    this.first = first;
    this.most = most;
    this.stable = stable;
  }

  /**
   * Counts a daemon that lived this long and returns how long to wait; null if there were too many
   * failures.
   */
  Duration failed(Duration lived) {
    failures = lived.compareTo(stable) < 0 ? failures + 1 : 1;
    return failures > most ? null : first.multipliedBy(1L << (failures - 1));
  }

  void reset() {
    failures = 0;
  }
}
