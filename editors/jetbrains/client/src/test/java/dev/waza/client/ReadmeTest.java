package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadmeTest {
  @TempDir Path dir;

  /** The printed lines compile as they are, in a method of a class that imports the names they use. */
  @Test
  void exampleCompiles() throws Exception {
    String readme = Files.readString(Path.of(System.getProperty("waza.plugin"), "..", "README.md"));
    Matcher m = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(readme);
    assertTrue(m.find(), "there is no example");
    Path source = dir.resolve("Example.java");
    Files.writeString(
        source,
        "import dev.waza.client.*;\nimport java.nio.file.Path;\nimport java.util.*;\nimport java.util.concurrent.CountDownLatch;\n"
            + "class Example {\n  static void main() throws Exception {\n" + m.group(1) + "  }\n}\n");
    var said = new ByteArrayOutputStream();
    int code = ToolProvider.getSystemJavaCompiler()
        .run(null, said, said, "-Xlint:all,-path", "-Werror", "-cp", System.getProperty("java.class.path"), "-d", dir.toString(), source.toString());
    assertEquals(0, code, said.toString(StandardCharsets.UTF_8));
  }
}
