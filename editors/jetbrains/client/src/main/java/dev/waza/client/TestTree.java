package dev.waza.client;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/**
 * Reports a run like a test runner, so that an IDE shows it as a tree of tests: a suite for each
 * task, a test for each trial. Not thread-safe: it is used, and calls back, on the client's own
 * thread.
 */
public final class TestTree {
  /** Receives the output. */
  public interface Output {
    /** A service message, on its own line. */
    void message(String line);

    /** Text for a person, of one or more lines, without an end of line. */
    void text(String text, boolean isError);

    /** The run is over and was reported completely; called once, last. */
    void done(String status);
  }

  /** Finds out why a trial did not pass. */
  public interface Reasons {
    /** Returns the reason, one sentence or more. If that fails, the trial is reported without it. */
    CompletableFuture<String> of(RunEvent trialComplete);
  }

  /** Locations of the tasks of a suite by id: a path and line such as {@code evals/eval.yaml:12}. */
  public record Places(String suiteName, String suitePath, Map<String, String> tasks) {}

  private static final class Task {
    String node;
    int unreported; // trials that ended, and wait for their reasons
    RunEvent complete;
  }

  private final Places places;
  private final Reasons reasons;
  private final Output out;
  private final Map<String, Task> tasks = new HashMap<>();
  private final Map<String, String> trials = new HashMap<>(); // the active nodes
  private final Map<String, Integer> times = new HashMap<>(); // number of starts of each trial
  private int unreported;
  private RunEvent end;

  /** Creates an empty tree. */
  public TestTree(Places places, Reasons reasons, Output out) {
    this.places = places;
    this.reasons = reasons;
    this.out = out;
  }

  /** Requests reasons from a client's daemon: the feedback of failed graders, or the error. */
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

  /** Applies an event of the run. */
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
          out.text("The daemon died; the run resumes.", true);
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
        suspicions(e);
        finish(e.taskId());
        break;
      default: // run_complete and run_resumed do not change the tree
    }
  }

  /** Prints the suspicious moves of trials that passed. */
  private void suspicions(RunEvent e) {
    long count = Json.number(e.params().get("suspicious"));
    if (count == 0) {
      return;
    }
    out.text(ServiceMessage.harmless(oneLine(e.text("taskName")) + ": " + count + " suspicious"), true);
    for (Object o : Json.array(e.params().get("suspicions"))) {
      Map<String, Object> s = Json.object(o);
      String move = Json.string(s.get("rule")) + " in " + Json.string(s.get("place")) + ": " + Json.string(s.get("evidence"));
      out.text(ServiceMessage.harmless("  trial " + Json.number(s.get("trialNum")) + ": " + oneLine(move)), true);
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

  /** Reports the start of a trial, once: a trial whose daemon died continues as the same node. */
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
    t.unreported++;
    unreported++;
    reasons
        .of(e)
        .handle((why, problem) -> problem == null ? why : "")
        .thenAccept(
            why -> {
              fail(node, e, why);
              end(node, e);
              t.unreported--;
              unreported--;
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
      default: // an error of the harness, or an unknown verdict
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
        return "Error outside the agent";
      case "skipped":
        return "Skipped";
      case "cancelled":
        return "Cancelled";
      case "needs_review":
        return "Waiting for a person's score";
      default:
        return verdict;
    }
  }

  private void end(String node, RunEvent e) {
    out.message(ServiceMessage.of("testFinished", "nodeId", node, "duration", Long.toString(e.durationMs())));
  }

  /** Ends a completed task once all of its trials are reported. */
  private void finish(String taskId) {
    Task t = tasks.get(taskId);
    if (t.complete != null && t.unreported == 0) {
      tasks.remove(taskId);
      out.message(ServiceMessage.of("testSuiteFinished", "nodeId", t.node));
    }
  }

  /** Ends the run once everything is reported. */
  private void finish() {
    if (end == null || unreported > 0) {
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
