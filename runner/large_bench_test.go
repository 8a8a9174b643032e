package runner_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"waza/runner"
	"waza/runner/report/formats"
)

// BenchmarkLargeOutput measures what waza does with an output of 4 MB: it grades, searches,
// compresses, records and reports the output. The floor is what cannot be saved: the hash of the
// same bytes and a file with them.
func BenchmarkLargeOutput(b *testing.B) {
	const trials, workers = 10, 1
	text := strings.Repeat("The agent reads src/café.go and answers at length; line 42 is fine.\n", 4_000_000/69)
	suite := "name: large\nconfig:\n  trials_per_task: " + strconv.Itoa(trials) + "\n  parallel: true\n  workers: " + strconv.Itoa(workers) +
		"\n  mock: {replies: [{output: " + strconv.Quote(text) + "}]}\n" +
		"graders: [{name: long, type: text, config: {contains: [at length]}}]\ntasks: [{id: a, prompt: x}]\n"
	run := func(key string) func(*testing.B) {
		return func(b *testing.B) {
			b.Setenv("ANTHROPIC_API_KEY", key)
			r, err := runner.New(runner.Options{StateDir: b.TempDir(), Reports: formats.Always()})
			if err != nil {
				b.Fatal(err)
			}
			loaded := benchLoad(b, r, suite)
			var took, floor time.Duration
			for b.Loop() {
				took += benchRun(b, r, loaded)
				floor += benchFloor(b, text, trials)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took.Milliseconds())/float64(trials*b.N), "ms/trial")
			b.ReportMetric(took.Seconds()/floor.Seconds(), "×floor")
		}
	}
	b.Run("plain", run(""))
	b.Run("secrets", run("sk-ant-Zx81kQpLmN4vT7wR2yB5"))
}

// benchFloor returns how long it takes to hash a text and to write it to a file, so many times.
func benchFloor(b *testing.B, text string, times int) time.Duration {
	file := filepath.Join(b.TempDir(), "floor")
	start := time.Now()
	for range times {
		content := []byte(text)
		_ = sha256.Sum256(content)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}
