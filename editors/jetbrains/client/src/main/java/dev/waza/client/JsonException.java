package dev.waza.client;

/** A text is not JSON, or exceeds a limit of the reader; the message contains the position. */
public final class JsonException extends Exception {
  private static final long serialVersionUID = 1;

  JsonException(String problem, int offset) {
    super(problem + " at offset " + offset);
  }
}
