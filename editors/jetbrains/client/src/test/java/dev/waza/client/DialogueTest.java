package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Replays the dialogues that all clients share. */
class DialogueTest {
  @TestFactory
  Stream<DynamicTest> dialogues() throws IOException {
    List<Path> files;
    try (Stream<Path> all = Files.list(Path.of(System.getProperty("waza.dialogues")))) {
      files = all.filter(p -> p.toString().endsWith(".jsonl")).sorted().toList();
    }
    assertFalse(files.isEmpty(), "there are no dialogues");
    return files.stream().map(p -> DynamicTest.dynamicTest(p.getFileName().toString(), () -> new Replay(p).play()));
  }

  /** A replayer that cannot fail proves nothing. */
  @TestFactory
  Stream<DynamicTest> expectationsBite() throws IOException {
    Path real = Path.of(System.getProperty("waza.dialogues"), "run_passes.jsonl");
    String text = Files.readString(real);
    return Stream.of("\"seq\":17,\"tasks\"", "\"passed\":2,\"trials\"", "\"2\":\"passed\"", "\"log\":2", "\"name\":\"Give thanks\"")
        .map(part -> DynamicTest.dynamicTest(part, () -> {
          int at = text.lastIndexOf(part);
          assertEquals(true, at > 0, "the dialogue has no " + part);
          String wrong = part.contains("2\"") || part.contains("name") ? part.replace("pass", "past").replace("thanks", "no thanks") : part.replace('2', '3').replace("17", "18");
          Path file = Files.createTempFile("dialogue", ".jsonl");
          try {
            Files.writeString(file, text.substring(0, at) + wrong + text.substring(at + part.length()));
            boolean failed = false;
            try {
              new Replay(file).play();
            } catch (AssertionError e) {
              failed = true;
            }
            assertEquals(true, failed, "a wrong expectation was accepted");
          } finally {
            Files.delete(file);
          }
        }));
  }
}
