package dev.waza.client;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/**
 * Tells of a run as a test runner does, so that an IDE shows it as a tree of tests: a suite for each
 * task, a test for each trial. Not safe for several threads: all is called, and called back, on the
 * client's own.
 */
public final class TestTree {
  /** Where it tells. */
  public interface Output {
    /** A service message, which stands on a line of its own. */
    void message(String line);

    /** Text for a person, of one line or more, without an end of line. */
    void text(String text, boolean isError);

    /** The run is over and all of it was told; comes last, once. */
    void done(String status);
  }

  /** Finds out why a trial did not pass. */
  public interface Reasons {
    /** Gives a sentence or more; where it fails, the trial is told of without. */
    CompletableFuture<String> of(RunEvent trialComplete);
  }

  /** Where the tasks of a suite stand: by id, a path and line such as {@code evals/eval.yaml:12}. */
  public record Places(String suiteName, String suitePath, Map<String, String> tasks) {}

  private static final class Task {
    String node;
    int untold; // trials that ended, and wait for their reasons
    RunEvent complete;
  }

  private final Places places;
  private final Reasons reasons;
  private final Output out;
  private final Map<String, Task> tasks = new HashMap<>();
  private final Map<String, String> trials = new HashMap<>(); // the nodes that go on
  private final Map<String, Integer> times = new HashMap<>(); // how often each trial was begun
  private int untold;
  private RunEvent end;

  /** Makes a tree that is empty. */
  public TestTree(Places places, Reasons reasons, Output out) {
    this.places = places;
    this.reasons = reasons;
    this.out = out;
  }

  /** Asks a client's daemon for reasons: what graders said that did not pass, or the error. */
  public static Reasons reasonsOf(WazaClient client) {
    return e ->
        client
            .request("run.trial", Map.of("runId", e.runId(), "taskId", e.taskId(), "trial", e.trial()))
            .thenApply(result -> reasons(Json.object(Json.object(result).get("trial"))));
  }

  private static String reasons(Map<String, Object> trial) {
    List<String> all = new ArrayList<>();
    String error = Json.string(trial.get("error"));
    if (!error.isEmpty()) {
      all.add(error);
    }
    for (Object o : Json.array(trial.get("graders"))) {
      Map<String, Object> g = Json.object(o);
      String why = g.get("error") == null ? Json.string(g.get("feedback")) : Json.string(g.get("error"));
      if (!Boolean.TRUE.equals(g.get("passed"))) {
        all.add(Json.string(g.get("name")) + (why.isEmpty() ? "" : ": " + why));
      }
    }
    return String.join("\n", all);
  }

  /** Takes an event of the run in. */
  public void hear(RunEvent e) {
    switch (e.method()) {
      case "eval.log":
        String level = e.text("level");
        out.text(ServiceMessage.harmless(e.text("message")), level.equals("warning") || level.equals("error"));
        break;
      case "eval.complete":
        if (e.isLast()) {
          end = e;
          finish();
        } else {
          out.text("The daemon died; the run is taken up again.", true);
        }
        break;
      default:
        progress(e);
    }
  }

  private void progress(RunEvent e) {
    switch (e.event()) {
      case "run_start":
        out.message(ServiceMessage.of("enteredTheMatrix"));
        out.message(ServiceMessage.of("rootName", "name", places.suiteName(), "location", "file://" + places.suitePath()));
        out.message(ServiceMessage.of("testCount", "count", Long.toString(Json.number(e.params().get("totalTrials")))));
        break;
      case "task_start":
        task(e);
        break;
      case "trial_start":
        start(e);
        break;
      case "trial_complete":
        complete(e);
        break;
      case "task_complete":
        task(e).complete = e;
        finish(e.taskId());
        break;
      default: // run_complete and run_resumed change nothing of the tree
    }
  }

  private Task task(RunEvent e) {
    return tasks.computeIfAbsent(
        e.taskId(),
        id -> {
          Task t = new Task();
          t.node = "task " + id;
          out.message(
              ServiceMessage.of("testSuiteStarted", "nodeId", t.node, "parentNodeId", "0", "name", oneLine(e.text("taskName")), "locationHint", place(id)));
          return t;
        });
  }

  private String place(String taskId) {
    String place = places.tasks().get(taskId);
    return place == null ? "" : "file://" + place;
  }

  private static String oneLine(String name) {
    return name.lines().map(String::strip).collect(Collectors.joining(" "));
  }

  private static String key(RunEvent e) {
    return e.trial() + " of " + e.taskId();
  }

  /** Tells of a trial that begins, once: one that died with its daemon goes on as the same. */
  private String start(RunEvent e) {
    return trials.computeIfAbsent(
        key(e),
        key -> {
          int time = times.merge(key, 1, Integer::sum);
          String node = "trial " + key + (time > 1 ? " #" + time : "");
          String name = "Trial " + e.trial() + (time > 1 ? " (again)" : "");
          out.message(
              ServiceMessage.of("testStarted", "nodeId", node, "parentNodeId", task(e).node, "name", name, "locationHint", place(e.taskId())));
          return node;
        });
  }

  private void complete(RunEvent e) {
    String node = start(e);
    trials.remove(key(e));
    Task t = task(e);
    if (e.status().equals("passed")) {
      end(node, e);
      return;
    }
    t.untold++;
    untold++;
    reasons
        .of(e)
        .handle((why, problem) -> problem == null ? why : "")
        .thenAccept(
            why -> {
              fail(node, e, why);
              end(node, e);
              t.untold--;
              untold--;
              finish(e.taskId());
              finish();
            });
  }

  private void fail(String node, RunEvent e, String why) {
    String first = why.lines().findFirst().orElse("");
    String message = first.isEmpty() ? headline(e.status()) : headline(e.status()) + ": " + first;
    switch (e.status()) {
      case "failed", "timeout":
        out.message(ServiceMessage.of("testFailed", "nodeId", node, "message", message, "details", why));
        break;
      case "skipped", "cancelled", "needs_review":
        out.message(ServiceMessage.of("testIgnored", "nodeId", node, "message", message));
        break;
      default: // the harness fell short, or a verdict that is not known yet
        out.message(ServiceMessage.of("testFailed", "nodeId", node, "message", message, "details", why, "error", "true"));
    }
  }

  private static String headline(String verdict) {
    switch (verdict) {
      case "failed":
        return "Failed";
      case "timeout":
        return "Timed out";
      case "error":
        return "The harness fell short";
      case "skipped":
        return "Skipped";
      case "cancelled":
        return "Cancelled";
      case "needs_review":
        return "Waits for a person's score";
      default:
        return verdict;
    }
  }

  private void end(String node, RunEvent e) {
    out.message(ServiceMessage.of("testFinished", "nodeId", node, "duration", Long.toString(e.durationMs())));
  }

  /** Ends a task that is complete, when all of its trials are told. */
  private void finish(String taskId) {
    Task t = tasks.get(taskId);
    if (t.complete != null && t.untold == 0) {
      tasks.remove(taskId);
      out.message(ServiceMessage.of("testSuiteFinished", "nodeId", t.node));
    }
  }

  /** Ends the run that is over, when all is told. */
  private void finish() {
    if (end == null || untold > 0) {
      return;
    }
    RunEvent last = end;
    end = null;
    if (!last.text("error").isEmpty()) {
      out.text(ServiceMessage.harmless(last.text("error")), true);
    }
    out.done(last.status());
  }
}
