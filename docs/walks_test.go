package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/runner/proc/proctest"
)

// walks are the walks of CONTRIBUTING.md: their titles by their archives in testdata/walks, and
// an expression that finds an existing thing of that kind in generated documents.
var walks = map[string]struct{ title, existing string }{
	"grader":   {"A new grader", `\baction_sequence\b`},
	"executor": {"A new executor", `\bclaude-cli\b`},
	"report":   {"A new report format", `\bsarif\b`},
	"door":     {"A new door", `(?i)clients of the message router (connect here|at)`},
}

func walkFiles(t *testing.T, name string) []txtar.File {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(repositoryRoot, "testdata", "walks", name+".txtar"))
	require.NoError(t, err)
	return archive.Files
}

// walkSteps returns the files that each numbered step of a walk starts with, and the text of the
// last step.
func walkSteps(t *testing.T, title string) (files []string, last string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "### "+title+"\n")
	require.True(t, ok, title)
	section, _, _ = strings.Cut(section, "\n#")
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(section, -1)[1:]
	for _, step := range steps[:len(steps)-1] {
		names, _, ok := strings.Cut(step, ":")
		require.True(t, ok, "%s: a step starts with its files and a colon: %s", title, step)
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1) {
			files = append(files, m[1])
		}
	}
	last, _, _ = strings.Cut(steps[len(steps)-1], "\n\n")
	return files, last
}

// A walk names the files of its archive, in their order, and the generated files that list things
// of its kind.
func TestWalksNameTheirFiles(t *testing.T) {
	t.Parallel()
	generated := maps.Clone(documents(t))
	generated["docs/cli.md"] = readText(t, "cli.md") // cmd/waza generates it
	for name, walk := range walks {
		var want []string
		for _, f := range walkFiles(t, name) {
			want = append(want, f.Name)
		}
		files, last := walkSteps(t, walk.title)
		require.Equal(t, want, files, walk.title)
		require.Contains(t, last, "make docs")
		var docs, rewritten []string
		for doc, text := range generated {
			if regexp.MustCompile(walk.existing).MatchString(text) {
				docs = append(docs, doc)
			}
		}
		for _, m := range regexp.MustCompile("`([^`]+\\.(?:md|json))`").FindAllStringSubmatch(last, -1) {
			rewritten = append(rewritten, m[1])
		}
		slices.Sort(docs)
		require.Equal(t, docs, rewritten, "%s: make docs rewrites these files", walk.title)
	}
}

// added returns an existing file with the lines of a walk that start with +. Each block of them
// is below the line above it.
func added(t *testing.T, name, existing, lines string) string {
	t.Helper()
	above := ""
	for line := range strings.Lines(lines) {
		if line, ok := strings.CutPrefix(line, "+"); ok {
			require.Equal(t, 1, strings.Count("\n"+existing, "\n"+above), "%s contains once: %s", name, above)
			existing = strings.TrimPrefix(strings.Replace("\n"+existing, "\n"+above, "\n"+above+line, 1), "\n")
			above += line
		} else {
			above = line
		}
	}
	return existing
}

// The walks work: a waza with the files of all of them has the grader, the executor, the format
// and the door.
func TestWalksLeadToWaza(t *testing.T) {
	t.Parallel()
	proctest.DependOnWaza(t)
	root, err := filepath.Abs(repositoryRoot)
	require.NoError(t, err)
	dir := t.TempDir()
	replace := map[string]string{}
	var suites []string
	for name := range walks {
		for _, f := range walkFiles(t, name) {
			text := string(f.Data)
			if existing, err := os.ReadFile(filepath.Join(root, f.Name)); err == nil {
				text = added(t, f.Name, string(existing), text)
			}
			to := filepath.Join(dir, filepath.FromSlash(f.Name))
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			require.NoError(t, os.WriteFile(to, []byte(text), 0o644))
			switch {
			case strings.HasSuffix(f.Name, ".go"):
				replace[filepath.Join(root, filepath.FromSlash(f.Name))] = to
			case strings.HasSuffix(f.Name, "/eval.yaml"):
				suites = append(suites, to)
			}
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	goTool := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
	}
	program := filepath.Join(dir, "waza")
	goTool("build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/waza")
	goTool("test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir+string(filepath.Separator),
		"./runner/grader/output", "./runner/executor/parrot", "./runner/report")
	for _, test := range []string{"output", "parrot", "report"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, test+".test"), "-test.v", "-test.run",
			"^(TestLength|TestParrot|TestLine)$").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `(?m)^--- PASS: Test`, string(out))
	}

	env := append(os.Environ(), "WAZA_STATE="+t.TempDir())
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != 1 { // some tasks failed
			require.NoError(t, err, "%s", out)
		}
		return string(out)
	}
	require.Len(t, suites, 2)
	for _, suite := range suites {
		expected, err := os.ReadFile(filepath.Join(filepath.Dir(suite), "expected.txt"))
		require.NoError(t, err)
		out := run("run", suite, "--report", "csv=trials.csv", "--report", "line=line.txt")
		table, err := os.ReadFile(filepath.Join(dir, "trials.csv"))
		require.NoError(t, err, out)
		line, err := os.ReadFile(filepath.Join(dir, "line.txt"))
		require.NoError(t, err, out)
		require.Contains(t, string(line), " 1 of ")
		for want := range strings.Lines(string(expected)) {
			id, verdict, _ := strings.Cut(strings.TrimSpace(want), " ")
			require.Regexp(t, `(?m)\b`+id+`\b.*\b`+verdict+`\b`, string(table))
		}
	}
	require.Regexp(t, `echo +.*127\.0\.0\.1:1`, run("serve", "--check", "--echo", "127.0.0.1:1", "--agents", "off", "--jobs", "off"))
}
