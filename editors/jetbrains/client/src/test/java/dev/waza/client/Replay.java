package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** Plays the daemon of one dialogue to a real client; editors/dialogues/README.md contains the rules. */
final class Replay {
  private static final int MILLIS = (int) Daemons.PATIENCE.toMillis();

  private static final String SETTLE = "settle";

  private final Path file;
  private final Queue<Map<String, Object>> early = new ArrayDeque<>();
  private final Map<Object, Object> ids = new HashMap<>(); // dialogue → client
  private CompletableFuture<?> latest = CompletableFuture.completedFuture(null);
  private ServerSocket server;
  private Socket socket;
  private LineReader in;
  private OutputStream out;
  private WazaClient client;

  Replay(Path file) {
    this.file = file;
  }

  void play() throws Exception {
    server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
    server.setSoTimeout(MILLIS);
    var endpoint = new SocketEndpoint((InetSocketAddress) server.getLocalSocketAddress());
    client = new WazaClient(endpoint, Daemons.rude(Daemons.PATIENCE), new Listener() {});
    try {
      client.start();
      accept();
      int number = 0;
      for (String text : Files.readAllLines(file)) {
        number++;
        step(Json.object(Json.read(text)), file.getFileName() + ":" + number);
      }
      settle();
      assertEquals(List.of(), List.copyOf(early), "the client sent more than expected");
    } finally {
      server.close();
      socket.close();
      client.close();
    }
  }

  private void accept() throws IOException {
    socket = server.accept();
    socket.setSoTimeout(MILLIS);
    socket.setTcpNoDelay(true);
    in = new LineReader(socket.getInputStream());
    out = socket.getOutputStream();
  }

  private void step(Map<String, Object> line, String where) throws Exception {
    if (line.containsKey("call")) {
      latest = call(Json.object(line.get("call")));
    } else if (line.containsKey("client")) {
      hear(Json.object(line.get("client")), where);
    } else if (line.containsKey("server")) {
      say(new LinkedHashMap<>(Json.object(line.get("server"))));
    } else if (line.containsKey("die")) {
      socket.close();
      accept();
    } else if (line.containsKey("expect")) {
      expect(Json.object(line.get("expect")), where);
    } else {
      assertTrue(line.containsKey("note"), where + ": unknown line");
    }
  }

  private CompletableFuture<?> call(Map<String, Object> call) {
    String run = Json.string(call.get("run"));
    switch (Json.string(call.get("do"))) {
      case "run":
        Map<String, Object> more = new LinkedHashMap<>(call);
        more.keySet().retainAll(Set.of("tasks", "trial", "verbose"));
        return client.run(Json.string(call.get("path")), more);
      case "cancel":
        return client.cancel(run);
      case "resume":
        return client.resume(run);
      case "subscribe":
        return client.subscribe(run, Json.number(call.get("from")));
      default:
        throw new AssertionError("unknown call: " + call);
    }
  }

  private void hear(Map<String, Object> want, String where) throws Exception {
    Map<String, Object> got = early.isEmpty() ? Json.object(Json.read(in.next())) : early.remove();
    assertEquals(want.get("method"), got.get("method"), where);
    Json.object(want.get("params"))
        .forEach((name, value) -> assertEquals(value, Json.object(got.get("params")).get(name), where + ": " + name));
    ids.put(want.get("id"), got.get("id"));
  }

  private void say(Map<String, Object> message) throws IOException {
    message.put("jsonrpc", "2.0");
    message.computeIfPresent("id", (name, id) -> ids.getOrDefault(id, id));
    out.write((Json.write(message) + "\n").getBytes(StandardCharsets.UTF_8));
    out.flush();
  }

  /**
   * Waits until the client has processed all messages, which its reply to a request shows. Its own
   * messages meanwhile are kept for the lines that expect them.
   */
  private void settle() throws Exception {
    say(new LinkedHashMap<>(Map.of("id", SETTLE, "method", "settle")));
    for (String text = in.next(); ; text = in.next()) {
      Map<String, Object> message = Json.object(Json.read(text));
      if (SETTLE.equals(message.get("id"))) {
        return;
      }
      early.add(message);
    }
  }

  private void expect(Map<String, Object> want, String where) throws Exception {
    settle();
    for (var e : Json.object(want.get("runs")).entrySet()) {
      RunState got = Daemons.get(client.state(e.getKey()));
      assertTrue(got != null, where + ": there is no run " + e.getKey());
      assertEquals(e.getValue(), plain(got, Json.object(e.getValue())), where);
    }
    if (want.get("error") instanceof Map) {
      expectError(Json.object(want.get("error")), where);
    }
  }

  private void expectError(Map<String, Object> want, String where) throws Exception {
    RpcException got = (RpcException) Daemons.problem(latest);
    assertEquals(want.get("code"), got.code(), where);
    assertEquals(want.get("message"), got.getMessage(), where);
    var found = Json.array(got.data().get("diagnostics"));
    var wanted = Json.array(want.get("diagnostics"));
    assertEquals(wanted.size(), found.size(), where);
    for (int i = 0; i < wanted.size(); i++) {
      Map<String, Object> diagnostic = new LinkedHashMap<>(Json.object(found.get(i)));
      diagnostic.keySet().retainAll(Json.object(wanted.get(i)).keySet());
      assertEquals(wanted.get(i), diagnostic, where);
    }
  }

  /** Returns the state in the format of dialogues, with only the expected members. */
  private static Map<String, Object> plain(RunState run, Map<String, Object> want) {
    Map<String, Object> tasks = new LinkedHashMap<>();
    run.tasks()
        .forEach(
            (id, t) -> {
              Map<String, Object> trials = new LinkedHashMap<>();
              t.trials().forEach((number, verdict) -> trials.put(number.toString(), verdict));
              tasks.put(id, Map.of("name", t.name(), "verdict", t.verdict(), "passed", t.passed(), "trials", trials));
            });
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("status", run.status());
    all.put("seq", run.seq());
    all.put("log", run.log());
    all.put("lastLog", run.lastLog());
    all.put("error", run.error());
    all.put("tasks", tasks);
    all.keySet().removeIf(name -> !want.containsKey(name) && "".equals(all.get(name)));
    return all;
  }
}
