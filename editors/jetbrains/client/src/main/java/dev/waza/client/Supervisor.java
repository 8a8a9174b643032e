package dev.waza.client;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Keeps a daemon alive. Only the owner's thread uses it. */
final class Supervisor {
  /** Receives the daemon's messages and the state. */
  interface Handler {
    void state(Listener.State state, String why);

    void notified(String method, Map<String, Object> params);
  }

  /** Methods of the daemon that this client needs. */
  private static final List<String> NEEDED = List.of("eval.run", "task.run", "run.cancel", "run.subscribe", "run.resume");

  private final Endpoint endpoint;
  private final WazaClient.Options options;
  private final ScheduledExecutorService owner;
  private final Backoff backoff;
  private final Handler handler;

  private Connection connection; // null without a connection
  private Listener.State state = Listener.State.FAILED;
  private CompletableFuture<Map<String, Object>> ready = CompletableFuture.failedFuture(closed());
  private long readyAt; // nanoTime; 0 until ready
  private Future<?> waiting;

  Supervisor(Endpoint endpoint, WazaClient.Options options, ScheduledExecutorService owner, Backoff backoff, Handler handler) {
    this.endpoint = endpoint;
    this.options = options;
    this.owner = owner;
    this.backoff = backoff;
    this.handler = handler;
  }

  static DaemonException closed() {
    return new DaemonException("the client of waza was not started, or is closed", false, null);
  }

  /** Starts the daemon, unless it runs. */
  CompletableFuture<Map<String, Object>> start() {
    if (state == Listener.State.FAILED) {
      backoff.reset();
      ready = new CompletableFuture<>();
      connect();
    }
    return ready.copy();
  }

  CompletableFuture<Object> request(String method, Map<String, Object> params) {
    if (state == Listener.State.READY) {
      return connection.request(method, params, options.patience());
    }
    return ready.thenCompose(info -> connection.request(method, params, options.patience()));
  }

  private void connect() {
    become(Listener.State.STARTING, "");
    readyAt = 0;
    try {
      ConnectionHandler end = new ConnectionHandler();
      connection = new Connection(endpoint.open(), owner, end);
      end.of = connection;
      initialize(connection);
    } catch (DaemonException e) {
      lost(e);
    } catch (IOException e) {
      lost(new DaemonException("could not reach the daemon (" + e.getMessage() + ")", false, e));
    }
  }

  private void initialize(Connection c) {
    Map<String, Object> params = new LinkedHashMap<>();
    params.put("processId", ProcessHandle.current().pid());
    params.put("clientInfo", Map.of("name", options.name(), "version", options.version()));
    params.put("workspaceFolders", options.folders().stream().map(Path::toString).toList());
    c.request("initialize", params, options.patience())
        .whenComplete(
            (result, problem) -> {
              if (connection != c) {
                return; // it ended before
              }
              DaemonException unfit = problem == null ? unfit(Json.object(result)) : refused(problem);
              if (unfit == null) {
                ready(Json.object(result));
              } else if (!(problem instanceof DaemonException)) { // a DaemonException means that it ended, which is reported elsewhere
                abandon(c, unfit);
              }
            });
  }

  /** Ends a running daemon that cannot be used. */
  private void abandon(Connection c, DaemonException why) {
    connection = null;
    Thread closing = new Thread(c::close, "waza-closing");
    closing.setDaemon(true);
    closing.start();
    lost(why);
  }

  private static DaemonException refused(Throwable problem) {
    Throwable cause = problem instanceof CompletionException ? problem.getCause() : problem;
    return new DaemonException("could not initialize the daemon: " + cause.getMessage(), cause instanceof RpcException, cause);
  }

  /** Returns why this client cannot use a daemon; null if it can. */
  private static DaemonException unfit(Map<String, Object> result) {
    Map<String, Object> info = Json.object(result.get("serverInfo"));
    String version = Json.string(info.get("version"));
    if (!"waza".equals(info.get("name"))) {
      return new DaemonException("this is not waza, but " + info.getOrDefault("name", "something else"), true, null);
    }
    String protocol = Json.string(result.get("protocolVersion"));
    if (!protocol.startsWith("1.")) {
      return new DaemonException("waza " + version + " speaks version " + protocol + " of its protocol, but this client needs version 1; install a matching one", true, null);
    }
    List<Object> methods = Json.array(Json.object(result.get("capabilities")).get("methods"));
    for (String method : NEEDED) {
      if (!methods.isEmpty() && !methods.contains(method)) {
        return new DaemonException("waza " + version + " is too old: it has no " + method + "; install a newer one", true, null);
      }
    }
    return null;
  }

  private void ready(Map<String, Object> info) {
    readyAt = System.nanoTime();
    become(Listener.State.READY, "");
    ready.complete(info);
  }

  private void become(Listener.State next, String why) {
    state = next;
    handler.state(next, why);
  }

  /** Decides what to do when there is no daemon. */
  private void lost(DaemonException why) {
    connection = null;
    if (state == Listener.State.CLOSED) {
      return;
    }
    if (ready.isDone()) {
      ready = new CompletableFuture<>();
    }
    Duration lived = readyAt == 0 ? Duration.ZERO : Duration.ofNanos(System.nanoTime() - readyAt);
    Duration wait = why.isHopeless() && readyAt == 0 ? null : backoff.failed(lived);
    if (wait == null) {
      become(Listener.State.FAILED, why.getMessage());
      ready.completeExceptionally(why);
      return;
    }
    become(Listener.State.WAITING, why.getMessage());
    waiting = owner.schedule(this::connect, wait.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** Starts no daemon any more. Returns the current connection, which the caller ends. */
  Connection leave() {
    if (state == Listener.State.CLOSED) {
      return null;
    }
    Connection last = connection;
    connection = null;
    if (waiting != null) {
      waiting.cancel(false);
    }
    become(Listener.State.CLOSED, "");
    if (ready.isDone()) {
      ready = new CompletableFuture<>();
    }
    ready.completeExceptionally(closed());
    return last;
  }

  /** Receives the messages of one connection, and its end unless it was abandoned before. */
  private final class ConnectionHandler implements Connection.Handler {
    private Connection of;

    @Override
    public void notified(String method, Map<String, Object> params) {
      if (of == connection) {
        handler.notified(method, params);
      }
    }

    @Override
    public void ended(DaemonException why) {
      if (of == connection) {
        lost(why);
      }
    }
  }
}
