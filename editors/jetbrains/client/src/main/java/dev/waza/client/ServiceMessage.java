package dev.waza.client;

/**
 * The messages with which test runners report tests to IDEs: {@code ##teamcity[name
 * attribute='value']}. Each is a single line, whatever its values contain.
 */
final class ServiceMessage {
  private static final String BEGIN = "##teamcity[";

  private ServiceMessage() {}

  /** Formats a message, without attributes whose value is empty. */
  static String of(String name, String... attributes) {
    StringBuilder out = new StringBuilder(BEGIN).append(name);
    for (int i = 0; i < attributes.length; i += 2) {
      if (!attributes[i + 1].isEmpty()) {
        escape(out.append(' ').append(attributes[i]).append("='"), attributes[i + 1]);
        out.append('\'');
      }
    }
    return out.append(']').toString();
  }

  /** Escapes text that could be read as a message, because agents can write anything. */
  static String harmless(String text) {
    return text.replace(BEGIN, "## teamcity[");
  }

  private static void escape(StringBuilder out, String value) {
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      switch (c) {
        case '\n':
          out.append("|n");
          break;
        case '\r':
          out.append("|r");
          break;
        case '|', '\'', '[', ']':
          out.append('|').append(c);
          break;
        default:
          if (c < 0x20 || c >= 0x7f) {
            out.append(String.format("|0x%04x", (int) c));
          } else {
            out.append(c);
          }
      }
    }
  }
}
