package dev.waza.client;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * JSON-RPC over one link. All methods except {@link #close} are for the owner's thread, which also
 * runs the handler. A connection has two threads: the reader, which closes the link when its input
 * ends, and the writer, so that a daemon that does not read blocks nobody.
 */
final class Connection {
  /** Receives the daemon's messages on the owner's thread. */
  interface Handler {
    void notified(String method, Map<String, Object> params);

    /** The connection has ended and the link is closed. Called once, last, no matter who ended it. */
    void ended(DaemonException why);
  }

  /** Maximum number of messages that wait for the owner before the reader stops reading. */
  private static final int AHEAD = 256;

  private static final String END = "";

  private final Endpoint.Link link;
  private final ScheduledExecutorService owner;
  private final Handler handler;
  private final Thread reader = thread(this::read, "waza-reader");
  private final Thread writer = thread(this::write, "waza-writer");
  private final Semaphore ahead = new Semaphore(AHEAD);
  private final BlockingQueue<String> out = new LinkedBlockingQueue<>();
  private final Map<Long, CompletableFuture<Object>> pending = new HashMap<>(); // used by the owner
  private long lastId; // used by the owner
  private DaemonException ended; // used by the owner; why the connection ended, or null

  Connection(Endpoint.Link link, ScheduledExecutorService owner, Handler handler) {
    this.link = link;
    this.owner = owner;
    this.handler = handler;
    reader.start();
    writer.start();
  }

  private static Thread thread(Runnable work, String name) {
    Thread t = new Thread(work, name);
    t.setDaemon(true);
    return t;
  }

  /**
   * Sends a request. The future gets the result, an {@link RpcException}, a {@link DaemonException}
   * if the connection ends first, or a {@link TimeoutException}. Cancelling the future or a timeout
   * also cancels the request.
   */
  CompletableFuture<Object> request(String method, Object params, Duration timeout) {
    CompletableFuture<Object> reply = new CompletableFuture<>();
    if (ended != null) {
      reply.completeExceptionally(ended);
      return reply;
    }
    long id = ++lastId;
    pending.put(id, reply);
    send(message(id, method, params));
    var alarm =
        owner.schedule(
            () -> reply.completeExceptionally(new TimeoutException(method + ": no answer within " + timeout.toSeconds() + " s")),
            timeout.toMillis(),
            TimeUnit.MILLISECONDS);
    reply.whenComplete(
        (result, problem) -> {
          alarm.cancel(false);
          onOwner(() -> forget(id));
        });
    return reply;
  }

  /** Drops a request that has no reply yet. */
  private void forget(long id) {
    if (pending.remove(id) != null && ended == null) {
      send(message(0, "$/cancelRequest", Map.of("id", id)));
    }
  }

  /** Sends a notification. */
  void sendNotification(String method, Object params) {
    send(message(0, method, params));
  }

  private static Map<String, Object> message(long id, String method, Object params) {
    Map<String, Object> m = new LinkedHashMap<>();
    m.put("jsonrpc", "2.0");
    if (id > 0) {
      m.put("id", id);
    }
    m.put("method", method);
    if (params != null) {
      m.put("params", params);
    }
    return m;
  }

  private void send(Map<String, Object> message) {
    out.add(Json.write(message));
  }

  private void write() {
    try (OutputStream to = link.out()) {
      for (String line = out.take(); !line.equals(END); line = out.take()) {
        to.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        if (out.isEmpty()) {
          to.flush();
        }
      }
    } catch (IOException e) {
      // The daemon does not read any more; the reader learns why.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void read() {
    DaemonException why;
    try {
      LineReader lines = new LineReader(link.in());
      for (String line = lines.next(); line != null; line = lines.next()) {
        Map<String, Object> message = parse(line);
        ahead.acquire();
        onOwner(
            () -> {
              ahead.release();
              take(message);
            });
      }
      why = new DaemonException("the daemon has ended" + lastWords(), false, null);
    } catch (DaemonException e) {
      why = e;
    } catch (IOException e) {
      why = new DaemonException("lost the connection to the daemon (" + e.getMessage() + ")", false, e);
    } catch (InterruptedException e) {
      why = new DaemonException("the connection was closed", false, null);
    }
    out.add(END);
    link.close();
    DaemonException reason = why;
    onOwner(() -> end(reason));
  }

  private String lastWords() {
    String words = link.lastWords();
    return words.isEmpty() ? "" : ": " + words;
  }

  private static Map<String, Object> parse(String line) throws DaemonException {
    try {
      Map<String, Object> message = Json.object(Json.read(line));
      if ("2.0".equals(message.get("jsonrpc"))) {
        return message;
      }
    } catch (JsonException e) {
      // The error is reported below.
    }
    String start = line.length() > 80 ? line.substring(0, 80) + "…" : line;
    throw new DaemonException("this is not waza: instead of JSON-RPC it wrote " + Json.write(start), true, null);
  }

  private void onOwner(Runnable work) {
    try {
      owner.execute(work);
    } catch (RejectedExecutionException e) {
      // The client is closed, so nobody needs the message.
      ahead.release();
    }
  }

  private void take(Map<String, Object> message) {
    Object id = message.get("id");
    if (message.get("method") instanceof String method) {
      if (id == null) {
        handler.notified(method, Json.object(message.get("params")));
      } else {
        refuse(id, method);
      }
      return;
    }
    CompletableFuture<Object> reply = id instanceof Long n ? pending.remove(n) : null;
    if (reply == null) {
      return; // dropped, or about one of our notifications
    }
    if (message.get("error") == null) {
      reply.complete(message.get("result"));
    } else {
      reply.completeExceptionally(new RpcException(Json.object(message.get("error"))));
    }
  }

  /** Refuses a request of the daemon, because this client supports none. */
  private void refuse(Object id, String method) {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("jsonrpc", "2.0");
    answer.put("id", id);
    answer.put("error", Map.of("code", -32601, "message", "this client has no method " + method));
    send(answer);
  }

  private void end(DaemonException why) {
    ended = why;
    var lost = new HashMap<>(pending);
    pending.clear();
    lost.values().forEach(reply -> reply.completeExceptionally(why));
    handler.ended(why);
  }

  /** Ends the connection and waits until all of it has ended. Not for the owner's thread. */
  void close() {
    out.add(END);
    DaemonProcess.join(writer, 1); // longer than needed, unless the daemon does not read
    link.close();
    reader.interrupt(); // it may be waiting for the owner
    DaemonProcess.join(reader, 5);
    DaemonProcess.join(writer, 5);
  }
}
