package dev.waza.client;

import java.util.Map;

/**
 * An event of a run. Each event is received once, in order, even if connections break.
 *
 * @param runId id of the run
 * @param seq its number in the run
 * @param method eval.progress, eval.log or eval.complete
 * @param params all members from the daemon; docs/methods.md describes them
 */
public record RunEvent(String runId, long seq, String method, Map<String, Object> params) {
  static RunEvent of(String method, Map<String, Object> params) {
    return new RunEvent(Json.string(params.get("runId")), Json.number(params.get("seq")), method, params);
  }

  /** Returns the end of an interrupted run that cannot be resumed. */
  static RunEvent givenUp(String runId, long seq, String why) {
    return of("eval.complete", Map.of("runId", runId, "seq", seq, "status", "interrupted", "error", why, GIVEN_UP, true));
  }

  private static final String GIVEN_UP = "givenUp";

  /** Returns the kind of an eval.progress, such as task_start; empty for other methods. */
  public String event() {
    return text("event");
  }

  /** Returns the id of the task; empty if the event has none. */
  public String taskId() {
    return text("taskId");
  }

  /** Returns the number of the trial; 0 if the event has none. */
  public long trial() {
    return Json.number(params.get("trialNum"));
  }

  /** Returns the verdict or status; empty if the event has none. */
  public String status() {
    return text("status");
  }

  /** Returns the duration of the run, task or trial that completed, in milliseconds. */
  public long durationMs() {
    return Json.number(params.get("durationMs"));
  }

  /** Returns whether the event ends the run. */
  public boolean isComplete() {
    return method.equals("eval.complete");
  }

  /** Returns whether this is the last event: the run has ended, or was interrupted and given up. */
  public boolean isLast() {
    return isComplete() && (!isInterruption() || isGivenUp());
  }

  /**
   * Returns whether the run's process ended before the run: run_resumed may follow, unless the
   * client gives up.
   */
  public boolean isInterruption() {
    return isComplete() && status().equals("interrupted");
  }

  /** Returns whether the client has given up an interrupted run. */
  public boolean isGivenUp() {
    return Boolean.TRUE.equals(params.get(GIVEN_UP));
  }

  /** Returns a member as text; empty if it is absent. */
  public String text(String name) {
    return Json.string(params.get(name));
  }
}
