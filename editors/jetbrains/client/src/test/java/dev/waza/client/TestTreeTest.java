package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class TestTreeTest {
  private static final Path DIALOGUES = Path.of(System.getProperty("waza.dialogues"));

  /** The reports of a tree, one per line. */
  private static final class Reports implements TestTree.Output {
    final List<String> lines = new ArrayList<>();

    @Override
    public void message(String line) {
      lines.add(line);
    }

    @Override
    public void text(String text, boolean isError) {
      lines.add((isError ? "error " : "text ") + text);
    }

    @Override
    public void done(String status) {
      lines.add("done " + status);
    }
  }

  private static Reports report(String dialogue, TestTree.Reasons reasons) throws Exception {
    return reportAll(dialogue, reasons).values().iterator().next();
  }

  /** Reports each run of a dialogue separately. */
  private static Map<String, Reports> reportAll(String dialogue, TestTree.Reasons reasons) throws Exception {
    var all = new LinkedHashMap<String, Reports>();
    var trees = new HashMap<String, TestTree>();
    var models = new HashMap<String, RunModel>();
    var places = new TestTree.Places("suite", "/workspace/eval.yaml", Map.of("ask", "/workspace/eval.yaml:7"));
    for (String line : Files.readAllLines(DIALOGUES.resolve(dialogue))) {
      Map<String, Object> said = Json.object(Json.object(Json.read(line)).get("server"));
      RunEvent e = RunEvent.of(Json.string(said.get("method")), Json.object(said.get("params")));
      if (e.seq() > 0 && models.computeIfAbsent(e.runId(), RunModel::new).hear(e)) {
        Reports reports = all.computeIfAbsent(e.runId(), id -> new Reports());
        trees.computeIfAbsent(e.runId(), id -> new TestTree(places, reasons, reports)).hear(e);
      }
    }
    return all;
  }

  private static CompletableFuture<String> reasonOf(RunEvent e) {
    return CompletableFuture.completedFuture("it's\nso");
  }

  @Test
  void reportsAPassingRun() throws Exception {
    assertEquals(
        List.of(
            "##teamcity[enteredTheMatrix]",
            "##teamcity[rootName name='suite' location='file:///workspace/eval.yaml']",
            "##teamcity[testCount count='4']",
            "##teamcity[testSuiteStarted nodeId='task ask' parentNodeId='0' name='Ask for salt' locationHint='file:///workspace/eval.yaml:7']",
            "text Running task: Ask for salt",
            "##teamcity[testStarted nodeId='trial 1 of ask' parentNodeId='task ask' name='Trial 1' locationHint='file:///workspace/eval.yaml:7']",
            "##teamcity[testFinished nodeId='trial 1 of ask' duration='5']"),
        report("run_passes.jsonl", TestTreeTest::reasonOf).lines.subList(0, 7));
  }

  @Test
  void reportsWhyTrialsDidNotPass() throws Exception {
    List<String> lines = report("run_fails.jsonl", TestTreeTest::reasonOf).lines;
    assertTrue(lines.contains("##teamcity[testFailed nodeId='trial 1 of fails' message='Failed: it|'s' details='it|'s|nso']"), lines.toString());
    assertTrue(lines.contains("##teamcity[testFailed nodeId='trial 1 of errs' message='Error outside the agent: it|'s' details='it|'s|nso' error='true']"), lines.toString());
    assertTrue(lines.contains("##teamcity[testFailed nodeId='trial 2 of times_out' message='Timed out: it|'s' details='it|'s|nso']"), lines.toString());
  }

  /** Suspicious passes are named with their moves; they remain passes. */
  @Test
  void reportsSuspiciousPasses() {
    var reports = new Reports();
    var tree = new TestTree(new TestTree.Places("suite", "/workspace/eval.yaml", Map.of()), TestTreeTest::reasonOf, reports);
    var move = Map.<String, Object>of("trialNum", 1, "rule", "edits-tests", "place", "test.sh", "evidence", "changed\nby the agent");
    tree.hear(RunEvent.of("eval.progress", Map.of("runId", "r", "seq", 1, "event", "task_complete", "taskId", "a", "taskName", "Ask",
        "status", "passed", "suspicious", 1, "suspicions", List.of(move))));
    assertTrue(reports.lines.contains("error Ask: 1 suspicious"), reports.lines.toString());
    assertTrue(reports.lines.contains("error   trial 1: edits-tests in test.sh: changed by the agent"), reports.lines.toString());
    assertTrue(reports.lines.contains("##teamcity[testSuiteFinished nodeId='task a']"), reports.lines.toString());
  }

  /** Trials whose reason is not available are reported without it. */
  @Test
  void reportsWithoutReasons() throws Exception {
    List<String> lines = report("fail_fast.jsonl", e -> CompletableFuture.failedFuture(new IllegalStateException())).lines;
    assertTrue(lines.contains("##teamcity[testFailed nodeId='trial 1 of rude' message='Failed']"), lines.toString());
    assertTrue(lines.contains("##teamcity[testIgnored nodeId='trial 1 of polite' message='Skipped']"), lines.toString());
  }

  /** Reasons that arrive late keep their task and the run open. */
  @Test
  void waitsForReasons() throws Exception {
    var late = new ArrayList<CompletableFuture<String>>();
    Reports reports = report("run_fails.jsonl", e -> {
      late.add(new CompletableFuture<>());
      return late.get(late.size() - 1);
    });
    assertEquals(List.of("##teamcity[testSuiteFinished nodeId='task passes']"), reports.lines.stream().filter(l -> l.contains("SuiteFinished")).toList());
    late.forEach(reason -> reason.complete(""));
    assertEquals(4, reports.lines.stream().filter(l -> l.contains("SuiteFinished")).count());
    assertEquals("done completed", reports.lines.get(reports.lines.size() - 1));
  }

  @Test
  void foreignTextsAreEscaped() throws Exception {
    List<String> lines = report("odd_texts.jsonl", TestTreeTest::reasonOf).lines;
    assertTrue(lines.stream().filter(l -> l.startsWith("##teamcity[")).allMatch(l -> l.chars().allMatch(c -> c >= 0x20 && c < 0x7f)), lines.toString());
    assertTrue(lines.stream().anyMatch(l -> l.contains("name='Gr|0x00fc|0x00dfe, |0x4e16|0x754c |0xd83e|0xdd8a in two lines")), lines.toString());
    Reports reports = new Reports();
    var tree = new TestTree(new TestTree.Places("", "", Map.of()), TestTreeTest::reasonOf, reports);
    tree.hear(RunEvent.of("eval.log", Map.of("runId", "r", "seq", 1, "level", "info", "message", "##teamcity[testCount count='0']")));
    assertEquals(List.of("text ## teamcity[testCount count='0']"), reports.lines);
  }

  /** Whatever happens in a run, each node that starts also ends, within its parent, and the run ends last. */
  @TestFactory
  Stream<DynamicTest> trees() throws Exception {
    List<Path> files;
    try (Stream<Path> all = Files.list(DIALOGUES)) {
      files = all.filter(p -> p.toString().endsWith(".jsonl")).sorted().toList();
    }
    return files.stream().map(p -> DynamicTest.dynamicTest(p.getFileName().toString(), () -> {
      for (Reports reports : reportAll(p.getFileName().toString(), TestTreeTest::reasonOf).values()) {
        assertWellFormed(reports.lines);
      }
    }));
  }

  private static void assertWellFormed(List<String> lines) {
    Map<String, String> open = new HashMap<>(); // node → parent
    for (String line : lines) {
      String node = attribute(line, "nodeId");
      if (line.contains("Started ")) {
        String parent = attribute(line, "parentNodeId");
        assertTrue(parent.equals("0") || open.containsKey(parent), line);
        assertEquals(null, open.put(node, parent), line);
      } else if (line.contains("Finished ")) {
        assertTrue(!open.containsValue(node), line);
        assertTrue(open.remove(node) != null, line);
      } else if (line.startsWith("done ")) {
        open.clear(); // an interrupted task ends with the run
      }
    }
    assertEquals(Map.of(), open, "started nodes did not end");
  }

  private static String attribute(String line, String name) {
    int at = line.indexOf(" " + name + "='");
    return at < 0 ? "" : line.substring(at + name.length() + 3, line.indexOf('\'', at + name.length() + 3));
  }
}
