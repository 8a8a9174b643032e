package dev.waza.client;

import java.util.Map;

/**
 * What is known of a run at one moment; immutable.
 *
 * @param id id of the run
 * @param status running, completed, failed, cancelled or interrupted
 * @param seq number of the last event that was heard
 * @param log how many texts were logged
 * @param lastLog the last of them; empty when none
 * @param error why the run did not complete; empty when it did, or goes on
 * @param tasks by id, in the order in which they were begun
 */
public record RunState(
    String id, String status, long seq, long log, String lastLog, String error, Map<String, TaskState> tasks) {

  /** Says whether nothing more is to come, unless the run is taken up again. */
  public boolean isOver() {
    return !status.equals("running");
  }

  /**
   * A task of the run.
   *
   * @param name what people call it
   * @param verdict running, or how it ended: passed, failed, error, timeout, cancelled, skipped, needs_review
   * @param total how many trials it has in this run
   * @param trials their verdicts by number, running for those that go on
   */
  public record TaskState(String name, String verdict, long total, Map<Long, String> trials) {
    /** How many trials passed. */
    public long passed() {
      return trials.values().stream().filter("passed"::equals).count();
    }
  }
}
