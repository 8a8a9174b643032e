package dev.waza.client;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A client of the waza daemon. It keeps a daemon alive from {@link #start} to {@link #close}. A
 * daemon that dies restarts, after longer waits each time, and the client requests the missed
 * events of runs. Runs of this client that died with the daemon resume. A listener receives each
 * event of each run once.
 *
 * <p>All methods are thread-safe, and only close blocks. The package's documentation describes on
 * which thread listeners are called and futures completed.
 */
public final class WazaClient implements AutoCloseable {
  /**
   * Options of a client.
   *
   * @param name of the program that contains the client
   * @param version of that program
   * @param folders directories it works in; relative paths are resolved against the first
   * @param patience how long to wait for answers
   * @param firstWait the first wait before a daemon that died restarts
   * @param farewell how long a daemon can take to confirm that it will end
   */
  public record Options(
      String name, String version, List<Path> folders, Duration patience, Duration firstWait, Duration farewell) {
    /** Returns options for an editor. */
    public static Options of(String name, String version, List<Path> folders) {
      return new Options(name, version, folders, Duration.ofSeconds(60), Duration.ofMillis(500), Duration.ofSeconds(5));
    }
  }

  private static final System.Logger LOG = System.getLogger(WazaClient.class.getName());
  private static final int MOST_FAILURES = 5;
  private static final Duration STABLE = Duration.ofMinutes(1);

  private final Options options;
  private final Listener listener;
  private final ScheduledThreadPoolExecutor owner;
  private final Supervisor supervisor;
  private final Map<String, RunModel> runs = new LinkedHashMap<>(); // used by the owner
  private final Set<String> own = new HashSet<>(); // runs that this client started; used by the owner
  private final Map<String, Consumer<RunEvent>> followers = new HashMap<>(); // used by the owner
  private volatile Thread ownerThread;

  /** Creates a client with the daemon of an endpoint, usually a {@link DaemonProcess}. */
  public WazaClient(Endpoint endpoint, Options options, Listener listener) {
    this.options = options;
    this.listener = listener;
    owner =
        new ScheduledThreadPoolExecutor(
            1,
            work -> {
              ownerThread = new Thread(work, "waza-client");
              ownerThread.setDaemon(true);
              return ownerThread;
            });
    owner.setRemoveOnCancelPolicy(true);
    owner.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    supervisor = new Supervisor(endpoint, options, owner, new Backoff(options.firstWait(), MOST_FAILURES, STABLE), new SupervisorHandler());
  }

  /**
   * Starts the daemon, also after the client gave up. The future gets the daemon's result of
   * initialize, or a {@link DaemonException} with the problem.
   */
  public CompletableFuture<Map<String, Object>> start() {
    return onOwner(supervisor::start);
  }

  /**
   * Sends a request, as soon as a daemon is ready. The future gets the result, an {@link
   * RpcException} if the daemon refuses, a {@link DaemonException} if no daemon runs or it dies
   * before it answers, or a TimeoutException. Cancelling the future cancels the request.
   */
  public CompletableFuture<Object> request(String method, Map<String, Object> params) {
    return onOwner(() -> supervisor.request(method, params));
  }

  /**
   * Starts a run. The future gets its id before any listener gets an event of it.
   *
   * @param suite path of the suite
   * @param more additional parameters of eval.run; with {@code tasks} or {@code taskId}, of
   *     task.run
   */
  public CompletableFuture<String> run(String suite, Map<String, Object> more) {
    return run(suite, more, event -> {});
  }

  /** Starts a run. {@code hears} gets each event of it after the listener, until the run is forgotten. */
  public CompletableFuture<String> run(String suite, Map<String, Object> more, Consumer<RunEvent> hears) {
    Map<String, Object> params = new LinkedHashMap<>();
    params.put("path", suite);
    params.putAll(more);
    boolean some = more.containsKey("tasks") || more.containsKey("taskId");
    return onOwner(
        () ->
            supervisor
                .request(some ? "task.run" : "eval.run", params)
                .thenApply(this::started)
                .whenComplete(
                    (id, problem) -> {
                      if (problem == null) {
                        followers.put(id, hears);
                      }
                    }));
  }

  /**
   * Cancels a run. The future completes when the daemon has accepted that; the event eval.complete
   * follows.
   */
  public CompletableFuture<Object> cancel(String runId) {
    return request("run.cancel", Map.of("runId", runId));
  }

  /** Resumes a run that was interrupted or cancelled; its events continue. */
  public CompletableFuture<String> resume(String runId) {
    return onOwner(() -> supervisor.request("run.resume", Map.of("runId", runId)).thenApply(this::started));
  }

  /** Follows a run of another client, from an event on, even if the daemon is lost. */
  public CompletableFuture<String> subscribe(String runId, long fromSeq) {
    Map<String, Object> params = Map.of("runId", runId, "fromSeq", fromSeq);
    return onOwner(() -> supervisor.request("run.subscribe", params).thenApply(this::known));
  }

  /** Returns the state of a run; the future gets null for an unknown run. */
  public CompletableFuture<RunState> state(String runId) {
    return onOwner(
        () -> {
          RunModel run = runs.get(runId);
          return CompletableFuture.completedFuture(run == null ? null : run.state());
        });
  }

  /** Forgets a run that is over or no longer needed. */
  public void forget(String runId) {
    onOwner(
        () -> {
          own.remove(runId);
          followers.remove(runId);
          return CompletableFuture.completedFuture(runs.remove(runId));
        });
  }

  /**
   * Ends the daemon, its runs and all their processes, and waits for that, at most some seconds.
   * Calling it again has no effect.
   *
   * @throws IllegalStateException on the client's own thread, which is needed for it
   */
  @Override
  public void close() {
    if (Thread.currentThread() == ownerThread) {
      throw new IllegalStateException("a listener cannot close its client");
    }
    Connection connection = await(onOwner(() -> CompletableFuture.completedFuture(supervisor.leave())));
    if (connection != null) {
      await(onOwner(() -> connection.request("shutdown", null, options.farewell())));
      await(onOwner(() -> CompletableFuture.completedFuture(tellExit(connection))));
      connection.close();
    }
    owner.shutdown();
    try {
      owner.awaitTermination(options.farewell().toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean tellExit(Connection connection) {
    connection.sendNotification("exit", null);
    return true;
  }

  /** Waits for a future that has its own timeout; null if it fails. */
  private static <T> T await(CompletableFuture<T> future) {
    return future.handle((value, problem) -> value).join();
  }

  /** Runs work on the owner's thread. Cancelling the future cancels what the work has started. */
  private <T> CompletableFuture<T> onOwner(Callable<CompletableFuture<T>> work) {
    CompletableFuture<T> result = new CompletableFuture<>();
    try {
      owner.execute(() -> execute(work, result));
    } catch (RejectedExecutionException e) {
      result.completeExceptionally(Supervisor.closed());
    }
    return result;
  }

  private static <T> void execute(Callable<CompletableFuture<T>> work, CompletableFuture<T> result) {
    try {
      CompletableFuture<T> started = work.call();
      started.whenComplete(
          (value, problem) -> {
            if (problem == null) {
              result.complete(value);
            } else {
              result.completeExceptionally(problem instanceof CompletionException && problem.getCause() != null ? problem.getCause() : problem);
            }
          });
      result.whenComplete(
          (value, problem) -> {
            if (result.isCancelled()) {
              started.cancel(false);
            }
          });
    } catch (Exception e) {
      result.completeExceptionally(e);
    }
  }

  /** Adds the run of a reply. On the owner's thread. */
  private String known(Object result) {
    String id = Json.string(Json.object(result).get("runId"));
    runs.computeIfAbsent(id, RunModel::new);
    return id;
  }

  /** Adds a run that this client resumes if it dies with the daemon. */
  private String started(Object result) {
    String id = known(result);
    own.add(id);
    return id;
  }

  private void notifyListener(Consumer<Listener> what) {
    try {
      what.accept(listener);
    } catch (RuntimeException e) {
      LOG.log(System.Logger.Level.ERROR, "a listener of waza failed", e);
    }
  }

  /** Receives the supervisor's messages. */
  private final class SupervisorHandler implements Supervisor.Handler {
    @Override
    public void state(Listener.State state, String why) {
      notifyListener(l -> l.state(state, why));
      if (state == Listener.State.READY) {
        catchUp();
      } else if (state == Listener.State.FAILED) {
        List.copyOf(own).forEach(id -> giveUp(id, why));
      }
    }

    /** Requests the missed events of runs that were not over. */
    private void catchUp() {
      runs.forEach(
          (id, run) -> {
            if (!run.isOver()) {
              Map<String, Object> params = Map.of("runId", id, "fromSeq", run.seq() + 1);
              supervisor.request("run.subscribe", params).exceptionally(problem -> refused(id, problem));
            }
          });
    }

    @Override
    public void notified(String method, Map<String, Object> params) {
      RunEvent e = RunEvent.of(method, params);
      if (e.runId().isEmpty() || e.seq() <= 0) {
        notifyListener(l -> l.notification(method, params));
        return;
      }
      if (hear(e) && e.isInterruption() && own.contains(e.runId())) {
        supervisor.request("run.resume", Map.of("runId", e.runId())).exceptionally(problem -> refused(e.runId(), problem));
      }
    }

    private boolean hear(RunEvent e) {
      boolean isNew = runs.computeIfAbsent(e.runId(), RunModel::new).hear(e);
      if (isNew) {
        notifyListener(l -> l.event(e));
        notifyListener(l -> followers.getOrDefault(e.runId(), event -> {}).accept(e));
      }
      return isNew;
    }

    private Object refused(String runId, Throwable problem) {
      if (problem instanceof RpcException) {
        giveUp(runId, problem.getMessage());
      }
      return null; // a lost daemon restarts, and is asked again
    }

    /** Ends a run for its followers, because its remaining events are not available. */
    private void giveUp(String runId, String why) {
      RunModel run = runs.get(runId);
      if (run != null && (!run.isOver() || run.isInterrupted())) {
        own.remove(runId);
        hear(RunEvent.givenUp(runId, run.seq() + 1, "the run was interrupted and does not continue: " + why));
      }
    }
  }
}
