package dev.waza.client;

import java.util.Map;

/**
 * An immutable snapshot of a run's state.
 *
 * @param id id of the run
 * @param status running, completed, failed, cancelled or interrupted
 * @param seq number of the last event that was received
 * @param log number of logged texts
 * @param lastLog the last logged text; empty if none
 * @param error why the run did not complete; empty if it did or is active
 * @param tasks by id, in the order of their start
 */
public record RunState(
    String id, String status, long seq, long log, String lastLog, String error, Map<String, TaskState> tasks) {

  /** Returns whether no more events follow, unless the run resumes. */
  public boolean isOver() {
    return !status.equals("running");
  }

  /**
   * A task of the run.
   *
   * @param name its display name
   * @param verdict running, or the result: passed, failed, error, timeout, cancelled, skipped,
   *     needs_review
   * @param total number of its trials in this run
   * @param trials their verdicts by number, running for active trials
   */
  public record TaskState(String name, String verdict, long total, Map<Long, String> trials) {
    /** Returns how many trials passed. */
    public long passed() {
      return trials.values().stream().filter("passed"::equals).count();
    }
  }
}
