package dev.waza.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads one JSON text, strictly by RFC 8259: no comments, no trailing commas, nothing after the
 * value. An object becomes a {@code Map<String, Object>} in its order (of members with the same
 * name the last counts), an array a {@code List<Object>}, a whole number that fits a {@code Long},
 * any other number a {@code Double}; null becomes null.
 */
final class JsonReader {
  /** Maximum nesting depth; deeper values are refused instead of overflowing the stack. */
  static final int MAX_DEPTH = 128;

  private final String text;
  private int at;
  private int depth;

  private JsonReader(String text) {
    this.text = text;
  }

  /** Reads a text that is one value. */
  static Object read(String text) throws JsonException {
    JsonReader r = new JsonReader(text);
    Object value = r.value();
    r.space();
    if (r.at < text.length()) {
      throw r.wrong("more than one value");
    }
    return value;
  }

  private JsonException wrong(String problem) {
    return new JsonException(problem, at);
  }

  private void space() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  /** Consumes and returns the next character; 0 at the end, because 0 is never valid in JSON. */
  private char next() {
    return at < text.length() ? text.charAt(at++) : 0;
  }

  private char peek() {
    return at < text.length() ? text.charAt(at) : 0;
  }

  private Object value() throws JsonException {
    space();
    switch (peek()) {
      case '{':
        return nested(this::object);
      case '[':
        return nested(this::array);
      case '"':
        return string();
      case 't':
        return word("true", Boolean.TRUE);
      case 'f':
        return word("false", Boolean.FALSE);
      case 'n':
        return word("null", null);
      default:
        return number();
    }
  }

  private interface Part {
    Object read() throws JsonException;
  }

  private Object nested(Part part) throws JsonException {
    if (++depth > MAX_DEPTH) {
      throw wrong("nested deeper than " + MAX_DEPTH);
    }
    at++;
    Object value = part.read();
    depth--;
    return value;
  }

  private Object word(String word, Object value) throws JsonException {
    if (!text.startsWith(word, at)) {
      throw wrong("expected a JSON value");
    }
    at += word.length();
    return value;
  }

  private Map<String, Object> object() throws JsonException {
    Map<String, Object> map = new LinkedHashMap<>();
    space();
    if (peek() == '}') {
      at++;
      return map;
    }
    while (true) {
      space();
      if (peek() != '"') {
        throw wrong("expected the name of a member");
      }
      String name = string();
      space();
      if (next() != ':') {
        throw wrong("expected a colon after a name");
      }
      map.put(name, value());
      if (ends('}')) {
        return map;
      }
    }
  }

  private List<Object> array() throws JsonException {
    List<Object> list = new ArrayList<>();
    space();
    if (peek() == ']') {
      at++;
      return list;
    }
    while (true) {
      list.add(value());
      if (ends(']')) {
        return list;
      }
    }
  }

  /** Consumes the comma before another part, or the end. */
  private boolean ends(char end) throws JsonException {
    space();
    char c = next();
    if (c != ',' && c != end) {
      throw wrong("expected a comma or " + end);
    }
    return c == end;
  }

  private String string() throws JsonException {
    at++;
    StringBuilder out = null; // only if something is escaped
    int from = at;
    while (true) {
      char c = next();
      if (c < ' ') {
        throw wrong("a string with a control character or without an end");
      }
      if (c == '"') {
        String plain = text.substring(from, at - 1);
        return out == null ? plain : out.append(plain).toString();
      }
      if (c == '\\') {
        out = out == null ? new StringBuilder() : out;
        out.append(text, from, at - 1).append(escaped());
        from = at;
      }
    }
  }

  private char escaped() throws JsonException {
    char c = next();
    int i = "\"\\/bfnrt".indexOf(c);
    if (i >= 0 && c != 0) {
      return "\"\\/\b\f\n\r\t".charAt(i);
    }
    if (c != 'u') {
      throw wrong("unknown escape");
    }
    int code = 0;
    for (int n = 0; n < 4; n++) {
      char hex = next();
      int digit = hex < 128 ? Character.digit(hex, 16) : -1;
      if (digit < 0) {
        throw wrong("escape is not hexadecimal");
      }
      code = code * 16 + digit;
    }
    return (char) code;
  }

  private Number number() throws JsonException {
    int from = at;
    if (peek() == '-') {
      at++;
    }
    boolean zero = peek() == '0';
    int digits = digits();
    if (digits == 0 || zero && digits > 1) {
      at = from;
      throw wrong("expected a JSON value");
    }
    boolean whole = true;
    if (peek() == '.') {
      at++;
      whole = false;
      some(digits());
    }
    if (peek() == 'e' || peek() == 'E') {
      at++;
      whole = false;
      if (peek() == '+' || peek() == '-') {
        at++;
      }
      some(digits());
    }
    return parse(text.substring(from, at), whole);
  }

  private int digits() {
    int from = at;
    while (peek() >= '0' && peek() <= '9') {
      at++;
    }
    return at - from;
  }

  private void some(int digits) throws JsonException {
    if (digits == 0) {
      throw wrong("number without digits");
    }
  }

  private Number parse(String number, boolean whole) throws JsonException {
    if (whole) {
      try {
        return Long.valueOf(number);
      } catch (NumberFormatException e) {
        // It has too many digits for a long.
      }
    }
    double value = Double.parseDouble(number);
    if (Double.isInfinite(value)) {
      throw wrong("number is too large");
    }
    return value;
  }
}
