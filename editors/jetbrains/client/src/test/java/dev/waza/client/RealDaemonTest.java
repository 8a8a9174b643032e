package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The client with the real daemon. */
class RealDaemonTest {
  @TempDir Path dir;

  /** Copies a suite of the shared dialogues to a directory of the test. */
  private String suite(String name) throws IOException {
    Path from = Path.of(System.getProperty("waza.dialogues"), "suites", name);
    Path to = Files.createDirectories(dir.resolve(name));
    try (var files = Files.list(from)) {
      for (Path f : files.toList()) {
        Files.copy(f, to.resolve(f.getFileName()));
      }
    }
    return to.resolve("eval.yaml").toString();
  }

  private Path gate() {
    return dir.resolve("gate.open");
  }

  private WazaClient client(Listener listener) {
    return new WazaClient(Daemons.real(dir.resolve("state"), Map.of("GATE", gate().toString())), Daemons.options(), listener);
  }

  /** Returns the daemon that this process has started. */
  private static Optional<ProcessHandle> daemon() {
    return ProcessHandle.current().children().filter(p -> p.info().command().orElse("").equals(Daemons.waza())).findFirst();
  }

  private static List<ProcessHandle> tree() {
    return ProcessHandle.current().descendants().toList();
  }

  /** Waits until the second trial of the suite gate waits. */
  private static void untilGate(Daemons.Recorder heard) throws InterruptedException {
    heard.until(e -> e.event().equals("trial_start") && e.trial() == 2);
  }

  private static void assertNumbered(List<RunEvent> events) {
    for (int i = 0; i < events.size(); i++) {
      assertEquals(i + 1, events.get(i).seq(), events.get(i).toString());
    }
  }

  @Test
  void receivesEventsInOrder() throws Exception {
    var heard = new Daemons.Recorder();
    try (WazaClient client = client(heard)) {
      Map<String, Object> info = Daemons.get(client.start());
      assertEquals("waza", Json.object(info.get("serverInfo")).get("name"));
      String id = Daemons.get(client.run(suite("verdicts"), Map.of()));
      heard.until(RunEvent::isComplete);
      assertNumbered(heard.seen);
      RunState state = Daemons.get(client.state(id));
      assertTrue(state.isOver());
      assertEquals("completed", state.status());
      assertEquals(
          List.of("passes passed 2", "fails failed 1", "errs error 0", "times_out timeout 0"),
          state.tasks().entrySet().stream().map(t -> t.getKey() + " " + t.getValue().verdict() + " " + t.getValue().passed()).toList());
      Map<String, Object> result = Json.object(Daemons.get(client.request("run.result", Map.of("runId", id))));
      assertEquals("completed", result.get("status"));
      client.forget(id);
      assertEquals(null, Daemons.get(client.state(id)));
    }
  }

  @Test
  void runsOneTrialOfATask() throws Exception {
    var heard = new Daemons.Recorder();
    try (WazaClient client = client(heard)) {
      client.start();
      String id = Daemons.get(client.run(suite("greeting"), Map.of("taskId", "thank", "trial", 2)));
      heard.until(RunEvent::isComplete);
      assertEquals(Map.of(2L, "passed"), Daemons.get(client.state(id)).tasks().get("thank").trials());
      assertEquals(1, Daemons.get(client.state(id)).tasks().size());
    }
  }

  @Test
  void cancelsARunWithItsProcesses() throws Exception {
    var heard = new Daemons.Recorder();
    try (WazaClient client = client(heard)) {
      client.start();
      String id = Daemons.get(client.run(suite("gate"), Map.of()));
      untilGate(heard);
      Daemons.eventually("no agent runs", () -> !agents().isEmpty()); // the trial starts before its process
      Daemons.get(client.cancel(id));
      assertEquals("cancelled", heard.until(RunEvent::isComplete).status());
      assertNumbered(heard.seen);
      assertEquals(List.of(), agents());
    }
  }

  private static List<ProcessHandle> agents() {
    return tree().stream().filter(p -> p.info().commandLine().orElse("").contains("agent.sh")).toList();
  }

  @Test
  void killedDaemonRestartsAndTheRunResumes() throws Exception {
    var heard = new Daemons.Recorder();
    try (WazaClient client = client(heard)) {
      client.start();
      String id = Daemons.get(client.run(suite("gate"), Map.of()));
      untilGate(heard);
      heard.untilState("READY");
      ProcessHandle first = daemon().orElseThrow();
      assertTrue(first.destroyForcibly());
      heard.untilState("WAITING: ");
      Files.createFile(gate());
      assertEquals("interrupted", heard.until(RunEvent::isComplete).status());
      assertEquals("completed", heard.until(RunEvent::isComplete).status());
      assertFalse(daemon().orElseThrow().equals(first));
      assertNumbered(new ArrayList<>(heard.seen));
      RunState state = Daemons.get(client.state(id));
      assertEquals("completed", state.status());
      assertEquals(3, state.tasks().get("first").passed());
      assertEquals(Map.of(1L, "failed", 2L, "failed", 3L, "failed"), state.tasks().get("second").trials());
    }
  }

  @Test
  void closingLeavesNoProcessAndNoThread() throws Exception {
    var heard = new Daemons.Recorder();
    WazaClient client = client(heard);
    client.start();
    Daemons.get(client.run(suite("gate"), Map.of()));
    untilGate(heard);
    Daemons.eventually("no agent runs", () -> !agents().isEmpty());
    List<ProcessHandle> tree = tree();
    client.close();
    for (ProcessHandle p : tree) {
      Daemons.eventually("a process remains: " + p.info(), () -> !p.isAlive());
    }
    Daemons.eventually("threads remain", () -> threads().isEmpty());
    client.close(); // again
    assertInstanceOf(DaemonException.class, Daemons.problem(client.request("ping", Map.of())));
  }

  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).filter(n -> n.startsWith("waza-")).toList();
  }

  @Test
  void errorsOfTheDaemonKeepTheirData() throws Exception {
    try (WazaClient client = client(new Listener() {})) {
      client.start();
      RpcException invalid = (RpcException) Daemons.problem(client.run(suite("invalid"), Map.of()));
      assertEquals(RpcException.VALIDATION_FAILED, invalid.code());
      assertEquals(3, Json.array(invalid.data().get("diagnostics")).size());
      RpcException unknown = (RpcException) Daemons.problem(client.cancel("no-such-run"));
      assertEquals(RpcException.RUN_NOT_FOUND, unknown.code());
      assertEquals("pong", Daemons.get(client.request("ping", Map.of())));
    }
  }

  /** An IDE's view of a run, with messages of the daemon. */
  @Test
  void reportsToAnIdeWhyTrialsFailed() throws Exception {
    var lines = new LinkedBlockingQueue<String>();
    try (WazaClient client = client(new Listener() {})) {
      TestTree.Output out =
          new TestTree.Output() {
            @Override
            public void message(String line) {
              lines.add(line);
            }

            @Override
            public void text(String text, boolean isError) {}

            @Override
            public void done(String status) {
              lines.add("done " + status);
            }
          };
      var tree = new TestTree(new TestTree.Places("verdicts", "eval.yaml", Map.of()), TestTree.reasonsOf(client), out);
      client.start();
      Daemons.get(client.run(suite("verdicts"), Map.of("tasks", List.of("fails", "errs"), "trial", 1), tree::hear));
      String failed = null;
      String error = null;
      for (String line = ""; !line.startsWith("done"); ) {
        line = lines.poll(Daemons.PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertTrue(line != null, "the run does not end");
        failed = line.contains("testFailed nodeId='trial 1 of fails'") ? line : failed;
        error = line.contains("testFailed nodeId='trial 1 of errs'") ? line : error;
      }
      assertTrue(failed != null && failed.contains("message='Failed: says_yes: "), failed);
      assertTrue(error != null && error.contains("the agent is broken"), error);
    }
  }
}
