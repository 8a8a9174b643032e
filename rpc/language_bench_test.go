package rpc_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

// bigSuite returns a suite with that many lines, including its tasks, and the position for
// typing.
func bigSuite(lines int) (text string, at [2]int) {
	var b strings.Builder
	b.WriteString("name: big\nconfig:\n  executor: mock\n  trials_per_task: 3\ntasks:\n")
	for i := 0; strings.Count(b.String(), "\n") < lines; i++ {
		fmt.Fprintf(&b, `  - id: task-%d
    name: Task number %d
    prompt: |
      Explain what function %d does,
      in one sentence.
    tags: [fast, smoke]
    graders:
      - name: mentions_%d
        type: code
        config:
          assertions:
            - "'x' in output"
            - "len(output.split()) < 30"
`, i, i, i, i)
	}
	return b.String(), [2]int{3, len("  trials_per_task")}
}

// filesSuite returns a suite whose tasks are in that many files.
func filesSuite(b *testing.B, dir string, files int) (text string, at [2]int) {
	b.Helper()
	require.NoError(b, os.Mkdir(filepath.Join(dir, "tasks"), 0o755))
	for i := range files {
		task := fmt.Sprintf("id: task-%d\nprompt: Explain what function %d does.\ngraders:\n  - {name: x, type: text, config: {contains: [x]}}\n",
			i, i)
		require.NoError(b, os.WriteFile(filepath.Join(dir, "tasks", fmt.Sprintf("t%d.yaml", i)), []byte(task), 0o644))
	}
	return "name: big\nconfig:\n  executor: mock\n  trials_per_task: 3\ntasks:\n  - tasks/*.yaml\n", [2]int{3, len("  trials_per_task")}
}

// BenchmarkKeystroke measures the time from a didChange until the diagnostics of that version
// arrive, which is how long a user waits. It includes any time for which the server waits for
// more changes. One key breaks a name, and the next one repairs it.
func BenchmarkKeystroke(b *testing.B) {
	for name, suite := range map[string]func(*testing.B, string) (string, [2]int){
		"2000lines": func(*testing.B, string) (string, [2]int) { return bigSuite(2000) },
		"200files":  func(b *testing.B, dir string) (string, [2]int) { return filesSuite(b, dir, 200) },
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			text, at := suite(b, dir)
			path := filepath.Join(dir, "eval.yaml")
			require.NoError(b, os.WriteFile(path, []byte(text), 0o644))
			c := stdio(b, newServer(b, rpc.Options{}))
			uri := "file://" + path
			open := map[string]any{"uri": uri, "languageId": "yaml", "version": 0, "text": text}
			c.notify("textDocument/didOpen", map[string]any{"textDocument": open})
			require.Zero(b, c.published(0))
			var took []time.Duration
			version := 0
			for b.Loop() {
				version++
				begin := time.Now()
				c.notify("textDocument/didChange", keystroke(uri, version, at))
				found := c.published(version)
				took = append(took, time.Since(begin))
				require.Equal(b, version%2, found)
			}
			slices.Sort(took)
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*95/100]), "p95-ms")
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// keystroke inserts a letter, or deletes it if the version is even.
func keystroke(uri string, version int, at [2]int) map[string]any {
	end, text := at[1]+1, ""
	if version%2 == 1 {
		end, text = at[1], "x"
	}
	place := func(character int) map[string]int { return map[string]int{"line": at[0], "character": character} }
	return map[string]any{
		"textDocument":   map[string]any{"uri": uri, "version": version},
		"contentChanges": []any{map[string]any{"range": map[string]any{"start": place(at[1]), "end": place(end)}, "text": text}},
	}
}

// notify sends a notification.
func (c *client) notify(method string, params any) {
	c.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	require.NoError(c, err)
	c.send(string(b) + "\n")
}

// published waits for the diagnostics of a version and returns their number.
func (c *client) published(version int) int {
	c.Helper()
	for {
		line, ok := c.line()
		require.True(c, ok, "the output has ended")
		var m struct {
			Method string
			Params struct {
				Version     *int
				Diagnostics []any
			}
		}
		require.NoError(c, json.Unmarshal([]byte(line), &m))
		if m.Method == "textDocument/publishDiagnostics" && m.Params.Version != nil && *m.Params.Version == version {
			return len(m.Params.Diagnostics)
		}
	}
}
