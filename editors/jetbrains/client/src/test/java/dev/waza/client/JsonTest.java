package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class JsonTest {
  @Test
  void readsJson() throws JsonException {
    assertEquals(
        Map.of("a", Arrays.asList(1L, -2.5, true, null), "b", Map.of()),
        Json.read(" {\"a\" : [1, -2.5, true, null],\r\n\t\"b\":{} } "));
    assertEquals("\"\\/\b\f\n\r\té🦊", Json.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83E\\udd8A\""));
    assertEquals(0L, Json.read("-0"));
    assertEquals(1e3, Json.read("1E+3"));
    assertEquals(9007199254740993L, Json.read("9007199254740993"));
    assertEquals(1e30, Json.read("1" + "0".repeat(30)));
    assertEquals("last", Json.object(Json.read("{\"a\":\"first\",\"a\":\"last\"}")).get("a"));
  }

  @Test
  void refusesInvalidJson() {
    for (String text :
        List.of(
            "", " ", "nul", "nulll", "True", "{", "[", "[1,]", "[,1]", "{\"a\":1,}", "{a:1}", "{\"a\"}", "{\"a\":}", "[1 2]", "01", "-", "+1",
            ".5", "1.", "1e", "1e+", "0x1", "NaN", "1e999", "\"", "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"\n\"", "\"\0\"", "'a'", "1 2",
            "//", "[1]]", "\u00a01", "\"\\u\uff11\uff11\uff11\uff11\"", "[".repeat(100_000))) {
      assertThrows(JsonException.class, () -> Json.read(text), text.length() > 50 ? "deep" : text);
    }
  }

  @Test
  void limitsTheDepth() throws JsonException {
    int most = JsonReader.MAX_DEPTH;
    Json.read("[".repeat(most) + "]".repeat(most));
    Json.read("[" + "[],".repeat(1000) + "[]]"); // next to each other they are not deep
    assertThrows(JsonException.class, () -> Json.read("[".repeat(most + 1) + "]".repeat(most + 1)));
  }

  @Test
  void refusesToWriteOtherValues() {
    assertThrows(IllegalArgumentException.class, () -> Json.write(Double.NaN));
    assertThrows(IllegalArgumentException.class, () -> Json.write(Map.of(1, 2)));
    assertThrows(IllegalArgumentException.class, () -> Json.write(List.of(new Object())));
  }

  /** Written values are read as the same, also after UTF-8 encoding, and are on one line. */
  @Test
  void writesWhatItReads() throws JsonException {
    for (long seed = 0; seed < 2_000; seed++) {
      Object value = random(new Random(seed), 0);
      String text = Json.write(value);
      assertEquals(-1, text.indexOf('\n'), text);
      String travelled = new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
      assertEquals(value, Json.read(travelled), "seed " + seed);
    }
  }

  /** Any text is either refused or has the same meaning when it is written again. */
  @Test
  void survivesAnyText() throws JsonException {
    String odd = "{}[]\",:\\u0019+-.eE truefalsn\n\t\0\ud83e\udd8a/";
    int read = 0;
    for (long seed = 0; seed < 20_000; seed++) {
      Random random = new Random(seed);
      StringBuilder text = new StringBuilder(Json.write(random(random, 2)));
      for (int n = random.nextInt(4); n > 0; n--) {
        int at = random.nextInt(text.length() + 1);
        text.replace(at, Math.min(text.length(), at + random.nextInt(3)), odd.charAt(random.nextInt(odd.length())) + "");
      }
      Object value;
      try {
        value = Json.read(text.toString());
      } catch (JsonException e) {
        continue;
      }
      read++;
      assertEquals(value, Json.read(Json.write(value)), "seed " + seed + ": " + text);
    }
    assertEquals(true, read > 2_000 && read < 20_000, "too few or too many texts are JSON: " + read);
  }

  private static Object random(Random r, int depth) {
    switch (r.nextInt(depth > 4 ? 5 : 7)) {
      case 0:
        return null;
      case 1:
        return r.nextBoolean();
      case 2:
        return r.nextLong() >> r.nextInt(60);
      case 3:
        return r.nextGaussian() * Math.pow(10, r.nextInt(40) - 20);
      case 4:
        return text(r);
      case 5:
        List<Object> list = new ArrayList<>();
        for (int n = r.nextInt(4); n > 0; n--) {
          list.add(random(r, depth + 1));
        }
        return list;
      default:
        Map<String, Object> map = new LinkedHashMap<>();
        for (int n = r.nextInt(4); n > 0; n--) {
          map.put(text(r), random(r, depth + 1));
        }
        return map;
    }
  }

  private static String text(Random r) {
    StringBuilder s = new StringBuilder();
    for (int n = r.nextInt(8); n > 0; n--) {
      s.append((char) (r.nextInt(3) == 0 ? r.nextInt(0x10000) : r.nextInt(0x80)));
    }
    return s.toString();
  }
}
