package dev.waza.client;

import java.util.Map;

/**
 * One thing that happened in a run. Each comes once, in order, whatever became of connections.
 *
 * @param runId id of the run
 * @param seq its number in the run
 * @param method eval.progress, eval.log or eval.complete
 * @param params all that the daemon said; docs/methods.md tells of the members
 */
public record RunEvent(String runId, long seq, String method, Map<String, Object> params) {
  static RunEvent of(String method, Map<String, Object> params) {
    return new RunEvent(Json.string(params.get("runId")), Json.number(params.get("seq")), method, params);
  }

  /** The end of a run that was interrupted, and that cannot be taken up again. */
  static RunEvent givenUp(String runId, long seq, String why) {
    return of("eval.complete", Map.of("runId", runId, "seq", seq, "status", "interrupted", "error", why, GIVEN_UP, true));
  }

  private static final String GIVEN_UP = "givenUp";

  /** What an eval.progress is about, such as task_start; empty for others. */
  public String event() {
    return text("event");
  }

  /** Id of the task; empty when it is about none. */
  public String taskId() {
    return text("taskId");
  }

  /** Number of the trial; 0 when it is about none. */
  public long trial() {
    return Json.number(params.get("trialNum"));
  }

  /** Verdict or status; empty when it has none. */
  public String status() {
    return text("status");
  }

  /** How long what completed has taken, in milliseconds. */
  public long durationMs() {
    return Json.number(params.get("durationMs"));
  }

  /** Says whether the run has ended with it. */
  public boolean isComplete() {
    return method.equals("eval.complete");
  }

  /** Says whether nothing of the run follows: it has ended, or was interrupted and is given up. */
  public boolean isLast() {
    return isComplete() && (!isInterruption() || isGivenUp());
  }

  /** Says whether the run's process ended before the run did: run_resumed may follow, unless it was given up. */
  public boolean isInterruption() {
    return isComplete() && status().equals("interrupted");
  }

  /** Says whether the client has given up a run that was interrupted. */
  public boolean isGivenUp() {
    return Boolean.TRUE.equals(params.get(GIVEN_UP));
  }

  /** A member that is text; empty when it is not there. */
  public String text(String name) {
    return Json.string(params.get(name));
  }
}
