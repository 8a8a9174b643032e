package dev.waza.client;

/** A text is not JSON, or is more than a reader takes; the message tells where. */
public final class JsonException extends Exception {
  private static final long serialVersionUID = 1;

  JsonException(String problem, int offset) {
    super(problem + " at offset " + offset);
  }
}
