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

/** What tests of clients share. */
final class Daemons {
  /** How long a test waits for what must come. Machines are busy. */
  static final Duration PATIENCE = Duration.ofSeconds(60);

  private Daemons() {}

  /** The waza that is tested. */
  static String waza() {
    return System.getProperty("waza.path");
  }

  static WazaClient.Options options() {
    return new WazaClient.Options("test", "1", List.of(), PATIENCE, Duration.ofMillis(1), PATIENCE);
  }

  /** Options for a program that has no idea of shutting down. */
  static WazaClient.Options rude(Duration patience) {
    return new WazaClient.Options("test", "1", List.of(), patience, Duration.ofMillis(1), Duration.ofMillis(50));
  }

  /** The real daemon, with a state directory of its own. */
  static DaemonProcess real(Path state, Map<String, String> more) {
    Map<String, String> env = new HashMap<>(more);
    env.put("WAZA_STATE", state.toString());
    return new DaemonProcess(waza(), List.of(), null, env);
  }

  /** A program that is called as waza is, and is none. */
  static DaemonProcess fake(Path dir, String script) throws IOException {
    Path program = dir.resolve("waza");
    Files.writeString(program, "#!/bin/sh\n" + script);
    assertTrue(program.toFile().setExecutable(true));
    return new DaemonProcess(program.toString(), List.of(), dir, Map.of(), Duration.ofSeconds(1));
  }

  static <T> T get(CompletableFuture<T> future) throws Exception {
    return future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
  }

  /** Why a future failed. */
  static Throwable problem(CompletableFuture<?> future) throws InterruptedException, TimeoutException {
    try {
      Object value = future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
      throw new AssertionError("it succeeded: " + value);
    } catch (ExecutionException e) {
      return e.getCause();
    }
  }

  /** Waits until processes or threads, which tell nobody of their end, are as they should. */
  static void eventually(String what, BooleanSupplier holds) throws InterruptedException {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!holds.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, what);
      TimeUnit.MILLISECONDS.sleep(5); // between looks at what cannot be waited for
    }
  }

  /** A listener that keeps all it hears. */
  static final class Heard implements Listener {
    final BlockingQueue<RunEvent> events = new LinkedBlockingQueue<>();
    final BlockingQueue<String> states = new LinkedBlockingQueue<>();
    final List<RunEvent> seen = new ArrayList<>(); // of the thread that takes events

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
        assertTrue(e != null, "what was awaited did not come; so far: " + seen);
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
