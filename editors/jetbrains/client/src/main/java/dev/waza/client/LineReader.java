package dev.waza.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Reads messages of one line each, in UTF-8. Not thread-safe. */
final class LineReader {
  /** Maximum length of a line. Results of runs are long, but no message of a daemon is longer. */
  static final int MAX_LINE = 128 << 20;

  private final InputStream in;
  private final int limit;
  private final byte[] buffer = new byte[1 << 16];
  private int at;
  private int end;

  LineReader(InputStream in) {
    this(in, MAX_LINE);
  }

  LineReader(InputStream in, int limit) {
    this.in = in;
    this.limit = limit;
  }

  /**
   * Reads the next line without its end; returns null at the end of the input. Blocks until a line
   * arrives.
   *
   * @throws IOException if reading fails, or the line is too long or not UTF-8
   */
  String next() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    while (true) {
      if (at == end) {
        at = 0;
        end = Math.max(0, in.read(buffer));
        if (end == 0) {
          return line.size() == 0 ? null : text(line);
        }
      }
      int from = at;
      while (at < end && buffer[at] != '\n') {
        at++;
      }
      if (line.size() + at - from > limit) {
        throw new IOException("a line is longer than " + limit + " bytes");
      }
      line.write(buffer, from, at - from);
      if (at < end) {
        at++;
        return text(line);
      }
    }
  }

  private static String text(ByteArrayOutputStream line) throws IOException {
    return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(line.toByteArray())).toString();
  }
}
