package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

/** Helpers for tests of clients. */
final class Daemons {
  /** Limits how long a test waits for an expected event. Machines can be busy. */
  static final Duration PATIENCE = Duration.ofSeconds(60);

  private Daemons() {}

  /** Returns the waza to test. */
  static String waza() {
    return System.getProperty("waza.path");
  }

  static WazaClient.Options options() {
    return new WazaClient.Options("test", "1", List.of(), PATIENCE, Duration.ofMillis(1), PATIENCE);
  }

  /** Options for a program that does not support shutdown. */
  static WazaClient.Options rude(Duration patience) {
    return new WazaClient.Options("test", "1", List.of(), patience, Duration.ofMillis(1), Duration.ofMillis(50));
  }

  /** Returns the real daemon with its own state directory. */
  static DaemonProcess real(Path state, Map<String, String> more) {
    Map<String, String> env = new HashMap<>(more);
    env.put("WAZA_STATE", state.toString());
    return new DaemonProcess(waza(), List.of(), null, env);
  }

  /** Returns a program that is named waza but is not. */
  static DaemonProcess fake(Path dir, String script) throws IOException {
    Path program = dir.resolve("waza");
    Files.writeString(program, "#!/bin/sh\n" + script);
    assertTrue(program.toFile().setExecutable(true));
    return new DaemonProcess(program.toString(), List.of(), dir, Map.of(), Duration.ofSeconds(1));
  }

  static <T> T get(CompletableFuture<T> future) throws Exception {
    return future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
  }

  /** Returns why a future failed. */
  static Throwable problem(CompletableFuture<?> future) throws InterruptedException, TimeoutException {
    try {
      Object value = future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
      throw new AssertionError("the future succeeded: " + value);
    } catch (ExecutionException e) {
      return e.getCause();
    }
  }

  /** Waits for a condition of processes or threads, which do not report their end. */
  static void eventually(String what, BooleanSupplier holds) throws InterruptedException {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!holds.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, what);
      TimeUnit.MILLISECONDS.sleep(5); // between polls
    }
  }

  /** A listener that records everything. */
  static final class Recorder implements Listener {
    final BlockingQueue<RunEvent> events = new LinkedBlockingQueue<>();
    final BlockingQueue<String> states = new LinkedBlockingQueue<>();
    final List<RunEvent> seen = new ArrayList<>(); // used by the thread that takes events

    @Override
    public void event(RunEvent event) {
      events.add(event);
    }

    @Override
    public void state(State state, String why) {
      states.add(state + (why.isEmpty() ? "" : ": " + why));
    }

    /** Waits for an event. */
    RunEvent until(Predicate<RunEvent> wanted) throws InterruptedException {
      while (true) {
        RunEvent e = events.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertTrue(e != null, "the expected event did not come; so far: " + seen);
        seen.add(e);
        if (wanted.test(e)) {
          return e;
        }
      }
    }

    /** Waits for a state, and returns it with its reason. */
    String untilState(String prefix) throws InterruptedException {
      while (true) {
        String s = states.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertTrue(s != null, "the client did not become " + prefix);
        if (s.startsWith(prefix)) {
          return s;
        }
      }
    }
  }
}
