package dev.waza.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** {@code waza jsonrpc} as a child process, connected by stdin and stdout. */
public final class DaemonProcess implements Endpoint {
  /** Time for a daemon to end on its own: it cancels its runs and cleans up after them. */
  private static final Duration GRACE = Duration.ofSeconds(8);

  private final List<String> command;
  private final Path directory;
  private final Map<String, String> environment;
  private final Duration grace;

  /**
   * Describes how to start the daemon.
   *
   * @param program path of waza, or its name on the PATH
   * @param arguments additional arguments after {@code jsonrpc}
   * @param directory for relative paths; null for that of this process
   * @param environment variables in addition to those of this process
   */
  public DaemonProcess(String program, List<String> arguments, Path directory, Map<String, String> environment) {
    this(program, arguments, directory, environment, GRACE);
  }

  DaemonProcess(String program, List<String> arguments, Path directory, Map<String, String> environment, Duration grace) {
    command = new ArrayList<>(List.of(program, "jsonrpc"));
    command.addAll(arguments);
    this.directory = directory;
    this.environment = Map.copyOf(environment);
    this.grace = grace;
  }

  @Override
  public Link open() throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command);
    if (directory != null) {
      builder.directory(directory.toFile());
    }
    builder.environment().putAll(environment);
    try {
      return new Running(builder.start(), grace);
    } catch (IOException e) {
      throw new DaemonException(
          command.get(0) + " could not be started; install waza, or set its path in the settings (" + e.getMessage() + ")", true, e);
    }
  }

  /** A started process. A thread drains stderr, so that the daemon does not block on it. */
  private static final class Running implements Link {
    private static final int WORDS = 4 << 10;

    private final Process process;
    private final Duration grace;
    private final Thread drain;
    private final StringBuilder words = new StringBuilder(); // guarded by itself

    Running(Process process, Duration grace) {
      this.process = process;
      this.grace = grace;
      drain = new Thread(this::drain, "waza-stderr");
      drain.setDaemon(true);
      drain.start();
    }

    private void drain() {
      try (BufferedReader in = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
        char[] buffer = new char[1 << 12];
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
          synchronized (words) {
            words.append(buffer, 0, n);
            words.delete(0, Math.max(0, words.length() - WORDS));
          }
        }
      } catch (IOException e) {
        // The process has ended: there is nothing more to drain.
      }
    }

    @Override
    public InputStream in() {
      return process.getInputStream();
    }

    @Override
    public OutputStream out() {
      return process.getOutputStream();
    }

    @Override
    public String lastWords() {
      join(drain, 1); // the process may still be ending, or have words to say
      synchronized (words) {
        return words.toString().strip();
      }
    }

    @Override
    public synchronized void close() {
      List<ProcessHandle> tree = process.descendants().toList();
      if (!gone()) {
        process.destroyForcibly();
        gone();
      }
      tree.forEach(ProcessHandle::destroyForcibly);
      join(drain, 1);
      quietly(process.getOutputStream()::close);
      quietly(process.getInputStream()::close);
      quietly(process.getErrorStream()::close);
    }

    private boolean gone() {
      try {
        return process.waitFor(grace.toMillis(), TimeUnit.MILLISECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }

  interface Closing {
    void run() throws IOException;
  }

  /** Closes a resource that may already be broken. */
  static void quietly(Closing closing) {
    try {
      closing.run();
    } catch (IOException e) {
      // The other side closed it.
    }
  }

  /** Waits for a thread that is about to end. */
  static void join(Thread thread, long seconds) {
    try {
      thread.join(TimeUnit.SECONDS.toMillis(seconds));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
