package dev.waza.client;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/** Reports each test in the format of go test -v, so that all tests of the editors look alike. */
public final class LineListener implements TestExecutionListener {
  private final Map<String, Long> started = new ConcurrentHashMap<>();
  private TestPlan plan;

  @Override
  public void testPlanExecutionStarted(TestPlan all) {
    plan = all;
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      started.put(test.getUniqueId(), System.nanoTime());
      System.out.println("=== RUN   " + name(test));
    }
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
    if (!test.isTest() && passed) {
      return; // a class or factory, whose tests are reported
    }
    result.getThrowable().ifPresent(problem -> problem.printStackTrace(System.out));
    double seconds = (System.nanoTime() - started.getOrDefault(test.getUniqueId(), System.nanoTime())) / 1e9;
    System.out.printf("--- %s: %s (%.2fs)%n", passed ? "PASS" : "FAIL", name(test), seconds);
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    System.out.printf("=== RUN   %s%n    skipped: %s%n--- SKIP: %s (0.00s)%n", name(test), reason, name(test));
  }

  /** Returns the class, followed by the path to the test in it. */
  private String name(TestIdentifier test) {
    StringBuilder path = new StringBuilder();
    for (TestIdentifier t = test; t != null; t = plan.getParent(t).orElse(null)) {
      path.insert(0, "/" + t.getDisplayName().replaceAll("\\(.*\\)$", "").replaceAll("[^\\w.-]+", "_"));
      if (t.getSource().filter(ClassSource.class::isInstance).isPresent()) {
        break;
      }
    }
    return "TestJava" + path;
  }
}
