package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeoutException;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Programs that are not a working daemon, simulated by shell scripts. */
class FaultsTest {
  private static final String INITIALIZED =
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"serverInfo\":{\"name\":\"waza\",\"version\":\"9\"},\"protocolVersion\":\"1.0\",\"capabilities\":{}}}";

  @TempDir Path dir;

  /** Options for a test that waits without success; a shell must be able to start within them. */
  private static WazaClient.Options impatient() {
    return Daemons.rude(Duration.ofSeconds(3));
  }

  private DaemonException startFails(Endpoint endpoint) throws Exception {
    try (var client = new WazaClient(endpoint, Daemons.rude(Daemons.PATIENCE), new Listener() {})) {
      return assertInstanceOf(DaemonException.class, Daemons.problem(client.start()));
    }
  }

  private static void assertSays(String part, DaemonException e) {
    assertTrue(e.getMessage().contains(part), e.getMessage());
  }

  private static String says(String line) {
    return "read line; echo '" + line + "'; ";
  }

  @Test
  void missingProgram() throws Exception {
    DaemonException e = startFails(new DaemonProcess("/nowhere/waza", List.of(), null, Map.of()));
    assertTrue(e.isHopeless());
    assertSays("/nowhere/waza could not be started; install waza, or set its path in the settings", e);
  }

  @Test
  void programIsNotWaza() throws Exception {
    DaemonException e = startFails(Daemons.fake(dir, "echo 'Usage: wazza [-h]'; cat >/dev/null"));
    assertTrue(e.isHopeless());
    assertSays("this is not waza: instead of JSON-RPC it wrote \"Usage: wazza [-h]\"", e);
  }

  @Test
  void tooOldByItsProtocol() throws Exception {
    assertSays("waza 9 speaks version 0.9 of its protocol", startFails(Daemons.fake(dir, says(INITIALIZED.replace("1.0", "0.9")) + "cat >/dev/null")));
  }

  @Test
  void tooOldByItsMethods() throws Exception {
    String old = INITIALIZED.replace("\"capabilities\":{}", "\"capabilities\":{\"methods\":[\"eval.run\",\"task.run\",\"run.cancel\",\"run.subscribe\"]}");
    DaemonException e = startFails(Daemons.fake(dir, says(old) + "cat >/dev/null"));
    assertTrue(e.isHopeless());
    assertSays("waza 9 is too old: it has no run.resume; install a newer one", e);
  }

  @Test
  void daemonThatEndsAtOnceIsGivenUp() throws Exception {
    Path starts = dir.resolve("starts");
    DaemonException e = startFails(Daemons.fake(dir, "echo . >> starts; echo 'no home directory' >&2; exit 1"));
    assertSays("the daemon has ended: no home directory", e);
    assertEquals(6, Files.readAllLines(starts).size(), "the first start and five more");
  }

  @Test
  void lastWordsCanFollowTheEndOfTheOutput() throws Exception {
    DaemonException e = startFails(Daemons.fake(dir, "exec >&-; read line; echo 'no home directory' >&2; exit 1"));
    assertSays("the daemon has ended: no home directory", e);
  }

  @Test
  void restartsAfterTheClientGaveUp() throws Exception {
    var heard = new Daemons.Recorder();
    DaemonProcess fake = Daemons.fake(dir, "[ -e good ] || exit 1; " + says(INITIALIZED) + "cat >/dev/null");
    try (var client = new WazaClient(fake, Daemons.rude(Daemons.PATIENCE), heard)) {
      Daemons.problem(client.start());
      heard.untilState("FAILED: ");
      assertInstanceOf(DaemonException.class, Daemons.problem(client.request("ping", Map.of())), "there is no daemon to ask");
      Files.createFile(dir.resolve("good"));
      Daemons.get(client.start());
      heard.untilState("READY");
    }
  }

  @Test
  void garbageRestartsTheDaemon() throws Exception {
    var heard = new Daemons.Recorder();
    String twice = "if [ -e again ]; then " + says(INITIALIZED) + says("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"pong\"}") + "else touch again; " + says(INITIALIZED) + "read line; echo '{]'; fi; cat >/dev/null";
    try (var client = new WazaClient(Daemons.fake(dir, twice), Daemons.rude(Daemons.PATIENCE), heard)) {
      Daemons.get(client.start());
      assertSays("this is not waza", assertInstanceOf(DaemonException.class, Daemons.problem(client.request("ping", Map.of()))));
      heard.untilState("WAITING: ");
      assertEquals("pong", Daemons.get(client.request("ping", Map.of())), "requested while there was no daemon");
    }
  }

  /** A caller that waits for a run learns that it will not continue. */
  @Test
  void runEndsWhenTheClientGivesUp() throws Exception {
    var heard = new Daemons.Recorder();
    String once = "[ ! -e once ] || exit 1; touch once; " + says(INITIALIZED) + says("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"runId\":\"r\",\"status\":\"running\"}}");
    try (var client = new WazaClient(Daemons.fake(dir, once), Daemons.rude(Daemons.PATIENCE), heard)) {
      Daemons.get(client.start());
      assertEquals("r", Daemons.get(client.run("eval.yaml", Map.of())));
      RunEvent end = heard.until(RunEvent::isGivenUp);
      assertTrue(end.text("error").startsWith("the run was interrupted and does not continue: the daemon has ended"), end.toString());
      assertEquals("interrupted", Daemons.get(client.state("r")).status());
    }
  }

  @Test
  void unansweredRequestTimesOut() throws Exception {
    try (var client = new WazaClient(Daemons.fake(dir, says(INITIALIZED) + "tee heard >/dev/null"), impatient(), new Listener() {})) {
      Daemons.get(client.start());
      Throwable problem = Daemons.problem(client.request("eval.list", Map.of()));
      assertEquals("eval.list: no answer within 3 s", assertInstanceOf(TimeoutException.class, problem).getMessage());
      untilReceived("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":2}}");
    }
  }

  @Test
  void cancelledFutureCancelsItsRequest() throws Exception {
    try (var client = new WazaClient(Daemons.fake(dir, says(INITIALIZED) + "tee heard >/dev/null"), Daemons.rude(Daemons.PATIENCE), new Listener() {})) {
      Daemons.get(client.start());
      CompletableFuture<Object> reply = client.request("eval.list", Map.of());
      untilReceived("\"eval.list\"");
      assertTrue(reply.cancel(false));
      untilReceived("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":2}}");
    }
  }

  private void untilReceived(String text) throws InterruptedException {
    Path heard = dir.resolve("heard");
    Daemons.eventually(
        "the daemon did not receive " + text,
        () -> {
          try {
            return Files.exists(heard) && Files.readString(heard).contains(text);
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        });
  }

  /** Unread output must not block a client that closes, or a caller. */
  @Test
  void daemonThatDoesNotReadBlocksNobody() throws Exception {
    var client = new WazaClient(Daemons.fake(dir, says(INITIALIZED) + "exec sleep 1000"), impatient(), new Listener() {});
    Daemons.get(client.start());
    CompletableFuture<Object> reply = client.request("eval.validate", Map.of("path", "x".repeat(1 << 20)));
    ProcessHandle process = ProcessHandle.current().children().findFirst().orElseThrow();
    client.close();
    Throwable problem = Daemons.problem(reply); // whichever was first, the timeout or the end
    assertTrue(problem instanceof DaemonException || problem instanceof TimeoutException, problem.toString());
    Daemons.eventually("the process remains", () -> !process.isAlive());
  }

  @Test
  void failingListenerDoesNoHarm() throws Exception {
    var refused = new CompletableFuture<Throwable>();
    var logged = new ConcurrentLinkedQueue<String>();
    Logger log = Logger.getLogger(WazaClient.class.getName());
    log.setUseParentHandlers(false);
    log.setFilter(record -> logged.add(record.getThrown().getMessage()) && false);
    WazaClient[] client = new WazaClient[1];
    Listener bad =
        new Listener() {
          @Override
          public void state(State state, String why) {
            if (state == State.READY) {
              refused.complete(assertThrows(IllegalStateException.class, () -> client[0].close()));
            }
            throw new IllegalArgumentException("a fault of the listener");
          }
        };
    client[0] = new WazaClient(Daemons.fake(dir, says(INITIALIZED) + says("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"pong\"}") + "cat >/dev/null"), Daemons.rude(Daemons.PATIENCE), bad);
    try (var c = client[0]) {
      Daemons.get(c.start());
      assertTrue(logged.contains("a fault of the listener"), logged.toString());
      assertEquals("a listener cannot close its client", Daemons.get(refused).getMessage());
      assertEquals("pong", Daemons.get(c.request("ping", Map.of())));
    }
  }

  @Test
  void waitDoublesEachTime() {
    Backoff backoff = new Backoff(Duration.ofSeconds(1), 3, Duration.ofMinutes(1));
    assertEquals(Duration.ofSeconds(1), backoff.failed(Duration.ZERO));
    assertEquals(Duration.ofSeconds(2), backoff.failed(Duration.ofSeconds(59)));
    assertEquals(Duration.ofSeconds(4), backoff.failed(Duration.ZERO));
    assertEquals(null, backoff.failed(Duration.ZERO));
    assertEquals(Duration.ofSeconds(1), backoff.failed(Duration.ofMinutes(1)), "a daemon that lived long enough resets the count");
  }
}
