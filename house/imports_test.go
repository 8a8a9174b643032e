package house_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repositoryRoot is the root of the repository, relative to this package.
const repositoryRoot = ".."

// importRules are the rules for imports, read from left to right. A pattern that ends in /...
// also matches everything below it. Rules between layers apply to tests, too; tests can do what
// a rule forbids to the package itself.
var importRules = []struct {
	who          string
	mayNotImport []string
	reason       string
	inTests      bool
}{
	{"eval/...", waza("runner/...", "rpc/...", "cmd/..."), "it contains the content of suites, and is the lowest layer", true},
	{"runner/...", waza("rpc/...", "cmd/..."), "it runs suites for any caller", true},
	{"rpc/...", waza("cmd/..."), "the command line is one of its users", true},
	{"editors/...", waza("cmd/..."), "nothing imports cmd", true},
	{"cmd/waza/...", waza("cmd/waza"), "the program is at the top; what commands share is below it", true},
	{"cmd/waza/exit", waza("cmd/waza/..."), "all commands end with its codes", true},
	{"cmd/waza/terminal", waza("cmd/waza/..."), "it knows terminals only", true},
	{"cmd/waza/output", waza("cmd/waza/flags", "cmd/waza/help", "cmd/waza/interrupt", "cmd/waza/progress", "cmd/waza/reports", "cmd/waza/review"), "all output goes through it", true},

	{"eval/...", []string{"os/exec", "plugin"}, "it starts nothing", false},
	{"eval/...", []string{"net/..."}, "it uses no network", false},
	{"eval/...", []string{"github.com/sourcegraph/jsonrpc2"}, "it knows no JSON-RPC", true},
	{"eval/text", waza("eval/..."), "it knows texts only", false},
	{"eval/fields", waza("eval/..."), "it knows structs only", false},
	{"eval/jsonwalk", waza("eval/..."), "it knows JSON only", false},
	{"eval/project", waza("eval", "eval/assist", "eval/discover", "eval/schema"), "eval and eval/discover read suites by what it says", false},
	{"eval/discover", waza("eval", "eval/assist", "eval/schema"), "eval loads what it finds", false},
	{"eval/decode", waza("eval/discover", "eval", "eval/assist", "eval/schema"), "it knows YAML and no suites", true},
	{"runner/...", []string{"github.com/sourcegraph/jsonrpc2", "net/rpc/..."}, "it knows no wire format", true},
	{"rpc/...", []string{"gopkg.in/yaml.v3", "go.yaml.in/yaml/..."}, "it knows no YAML", false},
	{"rpc/language", append(waza("rpc", "rpc/wire", "rpc/host", "runner/journal", "runner/report"), "github.com/sourcegraph/jsonrpc2", "net/...", "os/exec"), "it reaches its client and the runs by two interfaces", true},
	{"rpc/dispatch", append(waza("rpc", "rpc/host", "rpc/lsp", "rpc/language"), "go.lsp.dev/...", "net/..."), "it calls handlers, whatever they do", true},
	{"rpc/doors", waza("rpc", "rpc/host", "rpc/lsp", "rpc/language", "runner"), "it reaches agents and the router by interfaces", true},
	{"rpc/host", append(waza("eval/...", "runner/...", "rpc", "rpc/wire", "rpc/dispatch", "rpc/lsp", "rpc/language"), "github.com/sourcegraph/jsonrpc2", "encoding/json"), "it deals with processes and users, and knows no protocol", true},
	{"rpc/lsp", append(waza("rpc", "rpc/wire", "rpc/dispatch", "rpc/host", "rpc/language"), "github.com/sourcegraph/jsonrpc2", "net/http", "os/exec"), "it holds no connection", false},
	{"runner/pause", waza("eval/...", "runner/...", "rpc/...", "cmd/..."), "it knows clocks and contexts only", false},
	{"runner/... except runner/runnertest", waza("runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest", "runner/grader/gradertest", "runner/report/reporttest"), "they are for tests", false},
	{"rpc/... except rpc/gateway/doortest", waza("rpc/gateway/doortest"), "it is for tests", false},
	{"...", waza("rpc/gateway/echo"), "it is for tests", false},
	{"rpc/...", waza("runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest", "runner/grader/gradertest", "runner/report/reporttest"), "they are for tests", false},
	{"cmd/...", waza("runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest", "runner/grader/gradertest", "runner/report/reporttest"), "they are for tests", false},
	{"runner/routing", append(waza("eval", "runner/executor/...", "runner/grader/...", "runner/journal"), "net/...", "os/exec"), "it reaches clients by an interface", false},
	{"runner/fleet/seal", append(waza("eval/...", "runner/...", "rpc/...", "cmd/..."), "net/...", "os/exec"), "it knows keys and bytes only", false},
	{"runner/secrets", append(waza("eval", "runner/...", "rpc/..."), "net/http", "os/exec"), "it knows texts only, so that every room can use it", false},
	{"runner/stats", waza("eval/...", "runner/executor/...", "runner/grader/..."), "it knows numbers only", true},
	{"runner/grader/...", waza("runner/journal", "runner/report/..."), "a grader sees one trial", true},
	{"runner/executor/...", waza("runner/grader/...", "runner/journal", "runner/report/..."), "an executor does one trial", false},

	{"runner/record", waza("rpc/...", "runner/..."), "it holds the nouns, which all other rooms use", false},
	{"runner/... except runner/watch runner/report/... runner/telemetry runner/runnertest", waza("runner"), "runner is made of the rooms below it", false},
	{"runner/... except runner/watch runner/report/... runner/compare runner/history runner/runnertest", waza("runner/watch", "runner/report/...", "runner/compare", "runner/history"), "these are above runner or beside it", false},
	{"runner/compare", waza("runner/history", "runner/report/...", "runner/watch"), "it compares runs, wherever they are shown", false},
	{"runner/history", waza("runner/report/...", "runner/watch"), "it reads runs, wherever they are shown", false},
	{"runner/watch", waza("runner/compare", "runner/history", "runner/report/..."), "it only starts runs", false},
	{"runner/report/...", waza("runner/watch", "runner/telemetry"), "it shows runs and starts none", true},
	{"runner/report", waza("runner/report/..."), "formats is above the others and lists them", false},
	{"runner/grader", waza("runner/grader/match", "runner/grader/gradertest"), "it is the contract that families of graders fulfil", false},
	{"runner/grader/... except runner/grader/builtin", waza("runner/grader/behavior", "runner/grader/builtin", "runner/grader/judge", "runner/grader/output", "runner/grader/person", "runner/grader/program"), "a family of graders does not know the others", false},
	{"runner/executor", waza("runner/executor/..."), "it is the contract that executors fulfil", false},
	{"runner/executor/acp", waza("runner/executor/command", "runner/executor/mock", "runner/executor/model", "runner/executor/remote", "runner/executor/browser", "runner/executor/router"), "an executor does not know the others", false},
	{"runner/executor/command", waza("runner/executor/acp", "runner/executor/mock", "runner/executor/model", "runner/executor/remote", "runner/executor/browser", "runner/executor/router"), "an executor does not know the others", false},
	{"runner/executor/mock", waza("runner/executor/acp", "runner/executor/command", "runner/executor/model", "runner/executor/remote", "runner/executor/browser", "runner/executor/router"), "an executor does not know the others", false},
	{"runner/executor/remote", append(waza("runner/executor/acp", "runner/executor/command", "runner/executor/mock", "runner/executor/model", "runner/executor/browser", "runner/executor/router"), "net/...", "os/exec"), "it reaches agents by an interface", false},
	{"runner/executor/browser", append(waza("runner/executor/acp", "runner/executor/command", "runner/executor/mock", "runner/executor/model", "runner/executor/remote", "runner/executor/router"), "net/...", "os/exec"), "it reaches extensions by an interface", false},
	{"runner/executor/router", append(waza("runner/executor/acp", "runner/executor/command", "runner/executor/mock", "runner/executor/model", "runner/executor/remote", "runner/executor/browser"), "net/...", "os/exec"), "it routes among clients that the suite describes", false},
	{"runner/executor/model", waza("runner/executor/acp", "runner/executor/command", "runner/executor/mock", "runner/executor/remote", "runner/executor/browser", "runner/executor/router"), "an executor does not know the others", false},
	{"rpc/access", waza("eval/... except waza/eval/text", "runner/...", "rpc/...", "cmd/..."), "it knows secrets, names of hosts and log records only", false},
	{"rpc/wire", waza("eval/...", "runner/...", "rpc", "rpc/dispatch", "rpc/host", "rpc/lsp", "rpc/language"), "it knows messages, whatever they ask for", false},
	{"rpc/... except rpc/gateway/...", waza("rpc/gateway/..."), "cmd/waza ties the daemon and the doors together", false},
	{"rpc/gateway/...", waza("rpc", "rpc/dispatch", "rpc/host", "rpc/language", "rpc/lsp", "rpc/wire"), "doors import runner and rpc/gateway/door", true},
	{"rpc/gateway/link", waza("rpc/gateway/door", "rpc/gateway/store", "rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."), "it connects processes, whatever the doors do", true},
	{"rpc/gateway/lease", waza("eval/...", "runner/...", "rpc/gateway/door", "rpc/gateway/message", "rpc/gateway/store", "rpc/gateway/link"), "it knows clients, callers and places, and no protocol", true},
	{"rpc/gateway/owned", waza("rpc/gateway/door", "rpc/gateway/store", "rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."), "it knows runs only", false},
	{"rpc/gateway/agents/...", waza("rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."), "a door does not know the others", true},
	{"rpc/gateway/jobs/...", waza("rpc/gateway/agents/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."), "a door does not know the others", true},
	{"rpc/gateway/browser/...", waza("rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/router/..."), "a door does not know the others", true},
	{"rpc/gateway/router/...", waza("rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/..."), "a door does not know the others", true},
	{"rpc/gateway/door/...", waza("rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/...", "rpc/gateway/store/..."), "it holds what all doors share", true},
	{"rpc/gateway/store/...", waza("runner/...", "rpc/gateway/door/...", "rpc/gateway/link/...", "rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."), "it knows rows only", true},
	{"eval/jsonwalk", waza("eval/...", "runner/..."), "it knows JSON only", false},
	{"eval/files", waza("eval", "eval/assist", "eval/decode", "eval/discover", "eval/schema"), "it knows files only", false},
}

// topLevel are the visible folders of the repository.
var topLevel = []string{"cmd", "docs", "editors", "eval", "house", "rpc", "runner", "testdata"}

func waza(patterns ...string) []string {
	for i := range patterns {
		patterns[i] = "waza/" + patterns[i]
	}
	return patterns
}

// goFile is the input of the rules: a package and its imports. Files are parsed rather than
// listed by the go command, so that the rules also apply to files of other operating systems.
type goFile struct {
	path    string // slash-separated, from the repository's root
	pkg     string // name in the package clause
	doc     string // package comment
	imports []string
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	root := os.DirFS(repositoryRoot)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		file := goFile{path: name, pkg: parsed.Name.Name, doc: parsed.Doc.Text()}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			file.imports = append(file.imports, imported)
		}
		files = append(files, file)
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// matches reports whether a pattern matches an import path or directory.
func matches(pattern, name string) bool {
	if pattern, exceptions, ok := strings.Cut(pattern, " except "); ok {
		return matches(pattern, name) && !slices.ContainsFunc(strings.Fields(exceptions), func(e string) bool { return matches(e, name) })
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	return name == pattern
}

// violations lists the imports of files that break a rule, as sentences.
func violations(files []goFile) []string {
	var found []string
	for _, rule := range importRules {
		for _, file := range files {
			if !matches(rule.who, path.Dir(file.path)) || file.isTest() && !rule.inTests {
				continue
			}
			for _, imported := range file.imports {
				if slices.ContainsFunc(rule.mayNotImport, func(p string) bool { return matches(p, imported) }) {
					found = append(found, fmt.Sprintf("%s: %s may not import %s: %s", file.path, rule.who, imported, rule.reason))
				}
			}
		}
	}
	return found
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for _, v := range violations(goFiles(t)) {
		t.Error(v)
	}
}

// Every rule must be able to fail.
func TestImportRulesBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file    string
		imports string
		want    int
	}{
		{"eval/load.go", "waza/runner", 1},
		{"eval/load_test.go", "waza/runner/grader", 1},
		{"eval/load.go", "net", 1},
		{"eval/load.go", "net/http", 1},
		{"eval/load_test.go", "os/exec", 0},
		{"runner/run.go", "waza/rpc/wire", 1},
		{"runner/run.go", "waza/eval", 0},
		{"runner/grader/program/program.go", "os/exec", 0},
		{"runner/grader/judge/judge.go", "waza/runner/grader/output", 1},
		{"runner/grader/judge/judge.go", "waza/runner/grader/match", 0},
		{"runner/grader/builtin/builtin.go", "waza/runner/grader/output", 0},
		{"runner/grader/grader.go", "waza/runner/grader/builtin", 1},
		{"runner/record/record.go", "waza/eval", 0},
		{"runner/record/record.go", "waza/runner/journal", 1},
		{"runner/trial/trial.go", "waza/runner", 1},
		{"runner/trial/trial_test.go", "waza/runner", 0},
		{"runner/run.go", "waza/runner/compare", 1},
		{"runner/telemetry/traces.go", "waza/runner/report/page", 1},
		{"runner/telemetry/traces.go", "waza/runner", 0},
		{"runner/report/history.go", "waza/runner/history", 0},
		{"runner/report/formats/formats.go", "waza/runner/report/page", 0},
		{"runner/report/csv.go", "waza/runner/report/formats", 1},
		{"runner/watch/watch.go", "waza/runner", 0},
		{"rpc/server.go", "waza/rpc/gateway/jobs", 1},
		{"rpc/wire/reader.go", "waza/runner", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/wire", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/gateway/agents", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/gateway/door", 0},
		{"rpc/gateway/jobs/job.go", "waza/runner", 0},
		{"rpc/gateway/jobs/door.go", "waza/cmd/waza", 1},
		{"runner/run.go", "waza/cmd/waza/exit", 1},
		{"cmd/waza/run.go", "waza/cmd/waza/progress", 0},
		{"cmd/waza/progress/block.go", "waza/cmd/waza", 1},
		{"cmd/waza/progress/block.go", "waza/cmd/waza/terminal", 0},
		{"cmd/waza/exit/run.go", "waza/cmd/waza/output", 1},
		{"rpc/eval.go", "gopkg.in/yaml.v3", 1},
		{"rpc/language/lens.go", "waza/rpc", 1},
		{"rpc/language/lens.go", "waza/rpc/dispatch", 0},
		{"rpc/dispatch/call.go", "waza/rpc/language", 1},
		{"rpc/host/peer_linux.go", "waza/rpc/wire", 1},
		{"evaluate/load.go", "os/exec", 0},
	} {
		require.Len(t, violations([]goFile{{path: c.file, imports: []string{c.imports}}}), c.want, "%s imports %s", c.file, c.imports)
	}
}

func TestEachImportRuleBites(t *testing.T) {
	t.Parallel()
	for _, rule := range importRules {
		who, _, _ := strings.Cut(rule.who, " except ")
		for _, pattern := range rule.mayNotImport {
			file := goFile{path: strings.TrimSuffix(who, "/...") + "/x/f.go", imports: []string{strings.TrimSuffix(pattern, "/...")}}
			if !strings.HasSuffix(who, "/...") {
				file.path = who + "/f.go"
			}
			require.Contains(t, strings.Join(violations([]goFile{file}), "\n"), rule.reason, "%s imports %s", file.path, pattern)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	docs := map[string]string{}
	names := map[string]string{}
	for _, file := range goFiles(t) {
		if dir := path.Dir(file.path); !file.isTest() {
			names[dir] = file.pkg
			docs[dir] += file.doc
		}
	}
	for dir, name := range names {
		if name == "main" {
			require.NotEmpty(t, docs[dir], "%s: no package comment", dir)
			continue
		}
		require.True(t, strings.HasPrefix(docs[dir], "Package "+name+" "),
			"%s: needs a package comment that starts with %q", dir, "Package "+name)
	}
}

func TestFoldersAreThoseOfTheHouse(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.FromSlash(repositoryRoot))
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			require.Contains(t, topLevel, entry.Name(), "a folder that CONTRIBUTING.md knows nothing of")
		}
	}
}
