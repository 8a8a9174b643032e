package dev.waza.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Reads messages that stand on a line each, in UTF-8. Not safe for several threads. */
final class LineReader {
  /** The longest line that is read: results of runs are long, but what is longer is no daemon. */
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
   * Reads the next line, without its end; null when there is none. Blocks until there is one.
   *
   * @throws IOException when reading fails, or the line is too long or not UTF-8
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
