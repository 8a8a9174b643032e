package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class LineReaderTest {
  /** A stream that returns one byte at a time, as pipes may. */
  private static LineReader reader(byte[] bytes, int limit) {
    return new LineReader(
        new ByteArrayInputStream(bytes) {
          @Override
          public synchronized int read(byte[] b, int off, int len) {
            return super.read(b, off, Math.min(1, len));
          }
        },
        limit);
  }

  private static byte[] utf8(String s) {
    return s.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void readsLinesInAnyPieces() throws IOException {
    LineReader r = reader(utf8("eins\n\nzwei 🦊\r\nthe last"), 100);
    assertEquals("eins", r.next());
    assertEquals("", r.next());
    assertEquals("zwei 🦊\r", r.next());
    assertEquals("the last", r.next());
    assertNull(r.next());
    assertNull(r.next());
  }

  @Test
  void refusesTooLongLines() throws IOException {
    assertEquals("1234", reader(utf8("1234\n"), 4).next());
    assertThrows(IOException.class, () -> reader(utf8("12345\n"), 4).next());
  }

  @Test
  void refusesInvalidUtf8() {
    assertThrows(IOException.class, () -> reader(new byte[] {'"', (byte) 0xff, '"', '\n'}, 100).next());
  }
}
