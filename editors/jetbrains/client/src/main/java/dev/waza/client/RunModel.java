package dev.waza.client;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * The client's state of a run, built from its events by the rules of editors/dialogues/README.md.
 * Not thread-safe, but the result of {@link #state} is.
 */
final class RunModel {
  /** Final verdicts of trials, which are kept when the run resumes. */
  private static final Set<String> KEPT = Set.of("passed", "failed", "timeout", "needs_review");

  private static final class Task {
    String name;
    String verdict = "running";
    long total;
    final Map<Long, String> trials = new LinkedHashMap<>();
  }

  private final String id;
  private final Map<String, Task> tasks = new LinkedHashMap<>();
  private String status = "running";
  private String error = "";
  private String lastLog = "";
  private long seq;
  private long log;

  RunModel(String id) {
    this.id = id;
  }

  /** Applies an event; returns false, without changes, if it was applied before. */
  boolean hear(RunEvent e) {
    if (e.seq() <= seq) {
      return false;
    }
    if (!e.isInterruption()) { // which the journal does not contain: the next event has its number
      seq = e.seq();
    }
    switch (e.method()) {
      case "eval.log":
        log++;
        lastLog = e.text("message");
        break;
      case "eval.complete":
        status = e.status();
        error = e.text("error");
        break;
      default:
        progress(e);
    }
    return true;
  }

  private void progress(RunEvent e) {
    switch (e.event()) {
      case "task_start":
        task(e).verdict = "running";
        break;
      case "trial_start":
        task(e).trials.put(e.trial(), "running");
        break;
      case "trial_complete":
        task(e).trials.put(e.trial(), e.status());
        break;
      case "task_complete":
        task(e).verdict = e.status();
        break;
      case "run_resumed":
        resumed(Json.number(e.params().get("keptTrials")));
        break;
      default: // run_start and run_complete add nothing, and others are unknown
    }
  }

  private Task task(RunEvent e) {
    Task t = tasks.computeIfAbsent(e.taskId(), id -> new Task());
    t.name = e.text("taskName");
    t.total = Json.number(e.params().get("totalTrials"));
    return t;
  }

  private void resumed(long kept) {
    status = "running";
    error = "";
    long left = 0;
    for (Task t : tasks.values()) {
      t.trials.values().removeIf(verdict -> !KEPT.contains(verdict));
      left += t.trials.size();
      if (t.trials.size() < t.total) {
        t.verdict = "running";
      }
    }
    boolean changed = left != kept; // the suite changed, and the daemon does not report which trials it keeps
    tasks.values().removeIf(t -> changed || t.trials.isEmpty());
  }

  boolean isOver() {
    return !status.equals("running");
  }

  boolean isInterrupted() {
    return status.equals("interrupted");
  }

  long seq() {
    return seq;
  }

  RunState state() {
    Map<String, RunState.TaskState> all = new LinkedHashMap<>();
    tasks.forEach(
        (taskId, t) ->
            all.put(
                taskId,
                new RunState.TaskState(
                    t.name, t.verdict, t.total, Collections.unmodifiableMap(new LinkedHashMap<>(t.trials)))));
    return new RunState(id, status, seq, log, lastLog, error, Collections.unmodifiableMap(all));
  }
}
