package dev.waza.client;

/**
 * The messages by which test runners tell IDEs of tests: {@code ##teamcity[name attribute='value']}. Each
 * is one line, whatever stands in its values.
 */
final class ServiceMessage {
  private static final String BEGIN = "##teamcity[";

  private ServiceMessage() {}

  /** Writes a message; an attribute whose value is empty is left out. */
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

  /** Makes text harmless that would be taken for a message: agents write what they like. */
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
