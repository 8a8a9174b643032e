//go:build unix

package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gopkg.in/yaml.v3"

	"waza/runner/proc/proctest"
)

// mostSkipped is how many blocks of the pages need something that tests lack.
const mostSkipped = 25

// repetitive are pages that this test leaves out: generated texts without commands.
var repetitive = []string{"docs/cli.md", "docs/methods.md", "docs/diagnostics.md"}

// TestDocumentExamples does what README.md and the pages of docs print.
//
//   - A block that names a file, by a comment in its first line or the attribute
//     file="…", is written to a directory of the page. Suites among them are validated.
//   - A YAML block without a name holds keys of a suite. The test adds a name and a
//     task where they are missing, and validates the suite.
//   - A console block holds commands after "$ " and what they print. A command that
//     fails is followed by "$ echo $?", or its block has the attribute exit=CODE.
//   - A block of the language sh is run, and must succeed.
//   - JSON-RPC requests are sent to waza jsonrpc. The replies must be results,
//     unless the block shows them. Other JSON must be valid.
//   - test="TestX" names the test that does what the block shows.
//   - skip="reason" marks a block that nothing does. mostSkipped limits them.
//   - needs="program" ends the page where a program is missing.
//   - dir="repository" runs the commands of a block in this repository.
//   - findings=shown marks a suite with mistakes, which a console block reports.
//
// With -update the test rewrites the output of commands.
func TestDocumentExamples(t *testing.T) {
	if !*update { // else the generated documents are written afterwards
		t.Parallel()
	}
	proctest.DependOnWaza(t)
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	pages = append(pages, filepath.Join(repositoryRoot, "README.md"), filepath.Join("deploy", "README.md"))
	tests := testNames(t)
	var mutex sync.Mutex
	var skipped []string
	t.Cleanup(func() {
		slices.Sort(skipped)
		t.Logf("%d blocks are not run:\n%s", len(skipped), strings.Join(skipped, "\n"))
		if len(skipped) > mostSkipped {
			t.Errorf("%d blocks are not run, at most %d may be", len(skipped), mostSkipped)
		}
	})
	for _, file := range pages {
		page := path.Join("docs", filepath.ToSlash(file))
		if slices.Contains(repetitive, page) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			r := newPageRunner(t, page, tests)
			r.run()
			mutex.Lock()
			skipped = append(skipped, r.skipped...)
			mutex.Unlock()
		})
	}
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{"cmd", "docs", "eval", "rpc", "runner"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repositoryRoot, dir), func(file string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
			return err
		}))
	}
	return names
}

// A pageRunner does what a page shows, in a directory of its own.
type pageRunner struct {
	t          *testing.T
	page, text string
	dir, state string
	env        []string
	tests      map[string]bool
	suites     map[string]codeBlock // written and not validated yet, by file
	skipped    []string
	edits      []func() // rewrite blocks, in the order of the page
}

func newPageRunner(t *testing.T, page string, tests map[string]bool) *pageRunner {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.MkdirAll(home, 0o755))
	state := t.TempDir()
	env := proctest.Environment(t, "WAZA_STATE="+state, "HOME="+home, "COLUMNS=120", "NO_COLOR=1", "TZ=UTC", "LC_ALL=C",
		"WAZA_SERVE_BROWSER_LISTEN=", "WAZA_SERVE_ROUTER_LISTEN=", // no page starts a server
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	return &pageRunner{
		t: t, page: page, text: readPage(t, page), dir: dir, state: state, env: env, tests: tests,
		suites: map[string]codeBlock{},
	}
}

func (r *pageRunner) run() {
	r.t.Helper()
	blocks := codeBlocks(r.text)
	for _, b := range blocks {
		if program := b.attributes["needs"]; program != "" {
			if _, err := exec.LookPath(program); err != nil {
				r.t.Logf("%s is missing: the rest of the page is not run", program)
				break
			}
		}
		r.do(b)
	}
	for file, b := range r.suites {
		r.validate(file, b)
	}
	if !*update || len(r.edits) == 0 {
		return
	}
	for _, edit := range slices.Backward(r.edits) { // from the end, because offsets hold until there
		edit()
	}
	require.NoError(r.t, os.WriteFile(filepath.Join(repositoryRoot, r.page), []byte(r.text), 0o644))
}

// do does what a block shows.
func (r *pageRunner) do(b codeBlock) {
	r.t.Helper()
	reason, skip := b.attributes["skip"]
	test, covered := b.attributes["test"]
	switch {
	case skip:
		require.NotEmpty(r.t, reason, "%s:%d: skip needs a reason", r.page, b.line)
		r.skipped = append(r.skipped, fmt.Sprintf("%s:%d: %s", r.page, b.line, reason))
	case covered:
		require.True(r.t, r.tests[test], "%s:%d: no test is named %q", r.page, b.line, test)
	case b.file() != "":
		r.write(b)
	case b.language == "console":
		r.console(b)
	case b.language == "sh":
		if out, code := r.shell(b, "set -e\n"+b.text); code != 0 {
			r.t.Errorf("%s:%d exits with %d:\n%s%s", r.page, b.line, code, b.text, out)
		}
	case b.language == "yaml":
		r.part(b)
	case strings.HasPrefix(b.text, `{"jsonrpc"`):
		r.requests(b)
	case b.language == "json":
		require.True(r.t, json.Valid([]byte(b.text)), "%s:%d: not JSON", r.page, b.line)
	case b.language == "jsonl":
		for line := range strings.Lines(b.text) {
			require.True(r.t, json.Valid([]byte(line)), "%s:%d: not JSON: %s", r.page, b.line, line)
		}
	}
}

// write writes the file that a block shows.
func (r *pageRunner) write(b codeBlock) {
	r.t.Helper()
	file := filepath.Join(r.dir, filepath.FromSlash(b.file()))
	if earlier, ok := r.suites[file]; ok {
		r.validate(file, earlier)
	}
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	mode := os.FileMode(0o644)
	if strings.HasPrefix(b.content(), "#!") {
		mode = 0o755
	}
	require.NoError(r.t, os.WriteFile(file, []byte(b.content()), mode))
	if ok, _ := path.Match("*eval*.yaml", filepath.Base(file)); ok {
		r.suites[file] = b
	}
}

// validate checks a suite that a block shows.
func (r *pageRunner) validate(file string, b codeBlock) {
	r.t.Helper()
	delete(r.suites, file)
	out, code := r.shell(b, "waza validate '"+file+"'")
	if b.attributes["findings"] != "shown" && (code != 0 || strings.Contains(out, "[unknown-key]")) {
		r.t.Errorf("%s:%d: waza validate exits with %d:\n%s", r.page, b.line, code, out)
	}
}

// part validates keys of a suite that a block shows without the rest.
func (r *pageRunner) part(b codeBlock) {
	r.t.Helper()
	var keys map[string]any
	require.NoError(r.t, yaml.Unmarshal([]byte(b.text), &keys),
		"%s:%d: a YAML block without the name of a file holds keys of a suite", r.page, b.line)
	suite := b.text
	if keys["name"] == nil {
		suite += "\nname: part\n"
	}
	if keys["tasks"] == nil && keys["tasks_from"] == nil {
		suite += "\ntasks: [{id: a, prompt: Hello}]\n"
	}
	file := filepath.Join(r.dir, fmt.Sprintf("part%d.eval.yaml", b.line))
	require.NoError(r.t, os.WriteFile(file, []byte(suite), 0o644))
	r.validate(file, b)
	require.NoError(r.t, os.Remove(file))
}

// console runs the commands of a block and compares what they print.
func (r *pageRunner) console(b codeBlock) {
	r.t.Helper()
	commands := shownCommands(b.text)
	var script strings.Builder
	for _, c := range commands {
		require.NotEmpty(r.t, c.line, "%s:%d: a console block starts with a command", r.page, b.line)
		fmt.Fprintf(&script, "%s\n__code=$?; printf '\\036%%d\\036' $__code; (exit $__code)\n", c.line)
	}
	out, _ := r.shell(b, script.String())
	parts := strings.Split(out, "\x1e")
	require.Len(r.t, parts, 2*len(commands)+1, "%s:%d: not all commands were run:\n%s", r.page, b.line, out)
	var text strings.Builder
	for i, c := range commands {
		code, err := strconv.Atoi(parts[2*i+1])
		require.NoError(r.t, err)
		want := 0
		if i == len(commands)-1 {
			want, _ = strconv.Atoi(b.attributes["exit"])
		}
		if next := i + 1; next == len(commands) || commands[next].line != "echo $?" {
			if code != want {
				r.t.Errorf("%s:%d: %s exits with %d, not %d:\n%s", r.page, b.line, c.line, code, want, parts[2*i])
			}
		}
		got := strings.Split(strings.TrimSuffix(r.disguised(parts[2*i]), "\n"), "\n")
		if parts[2*i] == "" {
			got = nil
		}
		if !*update && !matchesOutput(c.output, got) {
			r.t.Errorf("%s:%d: %s prints\n%s\n\nand the page shows\n%s", r.page, b.line, c.line,
				strings.Join(got, "\n"), strings.Join(c.output, "\n"))
		}
		text.WriteString("$ " + c.line + "\n")
		for _, line := range merged(c.output, got) {
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	var indented strings.Builder
	for line := range strings.Lines(text.String()) {
		indented.WriteString(strings.TrimRight(b.indent+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	if indented.String() != r.text[b.from:b.to] {
		r.edits = append(r.edits, func() { r.text = r.text[:b.from] + indented.String() + r.text[b.to:] })
	}
}

// disguised replaces the directories of the test by ones that a reader could have.
func (r *pageRunner) disguised(out string) string {
	root, err := filepath.Abs(repositoryRoot)
	require.NoError(r.t, err)
	return strings.NewReplacer(r.dir, "~/demo", r.state, "~/.local/state/waza", root, "~/waza").Replace(out)
}

// shell runs a script and returns what it prints. Processes that it left in the
// background end with it.
func (r *pageRunner) shell(b codeBlock, script string) (string, int) {
	r.t.Helper()
	out, err := os.CreateTemp(r.t.TempDir(), "out")
	require.NoError(r.t, err)
	defer out.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	if b.attributes["dir"] == "repository" {
		cmd.Dir = repositoryRoot
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	_ = cmd.Run()
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	require.NoError(r.t, ctx.Err(), "%s:%d: the commands do not end:\n%s", r.page, b.line, script)
	text, err := os.ReadFile(out.Name())
	require.NoError(r.t, err)
	return string(text), cmd.ProcessState.ExitCode()
}

// requests sends the requests of a block to waza jsonrpc.
func (r *pageRunner) requests(b codeBlock) {
	r.t.Helper()
	var input strings.Builder
	var shown []string
	asked := map[string]string{}
	for line := range strings.Lines(b.text) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Method != "" && m.ID != nil {
			input.WriteString(line)
			asked[string(m.ID)] = strings.TrimSuffix(line, "\n")
			continue
		}
		shown = append(shown, strings.TrimSuffix(line, "\n"))
	}
	cmd := exec.CommandContext(r.t.Context(), "waza", "jsonrpc")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, r.env, strings.NewReader(input.String())
	out, err := cmd.Output()
	require.NoError(r.t, err, "%s:%d", r.page, b.line)
	got := strings.Split(strings.TrimSpace(r.disguised(string(out))), "\n")
	for _, want := range shown {
		require.True(r.t, slices.ContainsFunc(got, func(line string) bool { return matchesOutput([]string{want}, []string{line}) }),
			"%s:%d: no reply is %s\n%s", r.page, b.line, want, out)
	}
	for _, line := range got {
		var m struct{ ID, Error json.RawMessage }
		require.NoError(r.t, json.Unmarshal([]byte(line), &m))
		if m.Error != nil {
			require.True(r.t, slices.ContainsFunc(shown, func(want string) bool { return matchesOutput([]string{want}, []string{line}) }),
				"%s:%d: %s is answered by %s", r.page, b.line, asked[string(m.ID)], line)
		}
		delete(asked, string(m.ID))
	}
	require.Empty(r.t, asked, "%s:%d: requests without a reply", r.page, b.line)
}
