package dev.waza.client;

import java.util.Collection;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, numbers, booleans and null. */
public final class Json {
  private Json() {}

  /**
   * Reads one value, strictly. Whole numbers become {@code Long}, others {@code Double}.
   *
   * @throws JsonException if the text is not one JSON value, or is nested too deep
   */
  public static Object read(String text) throws JsonException {
    return JsonReader.read(text);
  }

  /**
   * Writes a value of maps with strings as keys, collections, strings, numbers, booleans and null,
   * on one line. It escapes control characters, and unpaired surrogates, which UTF-8 cannot encode.
   *
   * @throws IllegalArgumentException if the value contains anything else, including a number that
   *     is not finite
   */
  public static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(out, value);
    return out.toString();
  }

  /** Returns the value as an object; an empty one for other values. */
  @SuppressWarnings("unchecked") // the keys of all parsed objects are strings
  public static Map<String, Object> object(Object value) {
    return value instanceof Map ? (Map<String, Object>) value : Map.of();
  }

  /** Returns the value as an array; an empty one for other values. */
  @SuppressWarnings("unchecked") // readers can treat any list as a list of objects
  public static List<Object> array(Object value) {
    return value instanceof List ? (List<Object>) value : List.of();
  }

  /** Returns the value as a string; an empty one for other values. */
  public static String string(Object value) {
    return value instanceof String s ? s : "";
  }

  /** Returns the value as a whole number; 0 for other values. */
  public static long number(Object value) {
    return value instanceof Number n ? n.longValue() : 0;
  }

  private static void write(StringBuilder out, Object value) {
    if (value == null || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof String s) {
      quote(out, s);
    } else if (value instanceof Number n) {
      if (!Double.isFinite(n.doubleValue())) {
        throw new IllegalArgumentException("JSON cannot represent the number " + n);
      }
      out.append(n);
    } else if (value instanceof Map<?, ?> map) {
      object(out, map);
    } else if (value instanceof Collection<?> list) {
      array(out, list);
    } else {
      throw new IllegalArgumentException("JSON cannot represent a value of " + value.getClass());
    }
  }

  private static void object(StringBuilder out, Map<?, ?> map) {
    String before = "{";
    for (Map.Entry<?, ?> e : map.entrySet()) {
      if (!(e.getKey() instanceof String name)) {
        throw new IllegalArgumentException("JSON requires a string as a name, got " + e.getKey());
      }
      out.append(before);
      quote(out, name);
      write(out.append(':'), e.getValue());
      before = ",";
    }
    out.append(map.isEmpty() ? "{}" : "}");
  }

  private static void array(StringBuilder out, Collection<?> list) {
    String before = "[";
    for (Object value : list) {
      write(out.append(before), value);
      before = ",";
    }
    out.append(list.isEmpty() ? "[]" : "]");
  }

  private static void quote(StringBuilder out, String s) {
    out.append('"');
    for (int i = 0; i < s.length(); i++) {
      char c = s.charAt(i);
      int short_ = "\"\\\b\f\n\r\t".indexOf(c);
      if (short_ >= 0) {
        out.append('\\').append("\"\\bfnrt".charAt(short_));
      } else if (c < ' ' || Character.isSurrogate(c) && !paired(s, i)) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  /** Returns whether the surrogate at i is next to its other half. */
  private static boolean paired(String s, int i) {
    return Character.isHighSurrogate(s.charAt(i))
        ? i + 1 < s.length() && Character.isLowSurrogate(s.charAt(i + 1))
        : i > 0 && Character.isHighSurrogate(s.charAt(i - 1));
  }
}
