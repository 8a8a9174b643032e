package main_test

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

// repositoryRoot is where this package's directory stands in.
const repositoryRoot = "../.."

// importRules are the rules of the house, read from left to right. A pattern
// that ends in /... also means all below it. Rules of layers hold for tests
// too; what a package must not do itself, its tests may.
var importRules = []struct {
	who          string
	mayNotImport []string
	because      string
	inTests      bool
}{
	{"eval/...", waza("runner/...", "rpc/...", "cmd/..."), "it says what a suite says, and stands at the bottom", true},
	{"runner/...", waza("rpc/...", "cmd/..."), "it runs suites for whoever asks", true},
	{"rpc/...", waza("cmd/..."), "the command line is one of its users", true},
	{"editors/...", waza("cmd/..."), "nothing imports cmd", true},
	{"cmd/waza/...", waza("cmd/waza"), "the program is at the top; what commands share is below it", true},
	{"cmd/waza/exit", waza("cmd/waza/..."), "all commands end with its codes", true},
	{"cmd/waza/terminal", waza("cmd/waza/..."), "it knows terminals only", true},
	{"cmd/waza/output", waza("cmd/waza/flags", "cmd/waza/help", "cmd/waza/interrupt", "cmd/waza/progress", "cmd/waza/reports", "cmd/waza/review"), "all that is printed goes through it", true},

	{"eval/...", []string{"os/exec", "plugin"}, "it starts nothing", false},
	{"eval/...", []string{"net/..."}, "it uses no network", false},
	{"eval/...", []string{"github.com/sourcegraph/jsonrpc2"}, "it knows no JSON-RPC", true},
	{"eval/text", waza("eval/..."), "it knows texts only", false},
	{"eval/fields", waza("eval/..."), "it knows structs only", false},
	{"eval/jsonwalk", waza("eval/..."), "it knows JSON only", false},
	{"eval/dataset", waza("eval", "eval/assist", "eval/schema"), "it knows rows and no tasks", true},
	{"eval/discover", waza("eval", "eval/assist", "eval/schema"), "eval loads what it finds", false},
	{"eval/decode", waza("eval/discover", "eval", "eval/assist", "eval/schema"), "it knows YAML and no suites", true},
	{"runner/...", []string{"github.com/sourcegraph/jsonrpc2", "net/rpc/..."}, "it knows no wire format", true},
	{"rpc/...", []string{"gopkg.in/yaml.v3", "go.yaml.in/yaml/..."}, "it knows no YAML", false},
	{"rpc/language", append(waza("rpc", "rpc/wire", "rpc/host", "runner/journal", "runner/report"), "github.com/sourcegraph/jsonrpc2", "net/...", "os/exec"), "it reaches its client and the runs by two interfaces", true},
	{"rpc/dispatch", append(waza("rpc", "rpc/host", "rpc/lsp", "rpc/language"), "go.lsp.dev/...", "net/..."), "it calls handlers, whatever they do", true},
	{"rpc/host", append(waza("eval/...", "runner/...", "rpc", "rpc/wire", "rpc/dispatch", "rpc/lsp", "rpc/language"), "github.com/sourcegraph/jsonrpc2", "encoding/json"), "it deals with processes and users, and knows no protocol", true},
	{"rpc/lsp", append(waza("rpc", "rpc/wire", "rpc/dispatch", "rpc/host", "rpc/language"), "github.com/sourcegraph/jsonrpc2", "net/http", "os/exec"), "it holds no connection", false},
	{"runner/pause", waza("eval/...", "runner/...", "rpc/...", "cmd/..."), "it knows clocks and contexts only", false},
	{"runner", waza("runner/record/recordtest", "runner/runnertest"), "they are for tests", false},
	{"rpc/...", waza("runner/record/recordtest", "runner/runnertest"), "they are for tests", false},
	{"cmd/...", waza("runner/record/recordtest", "runner/runnertest"), "they are for tests", false},
	{"runner/stats", waza("eval/...", "runner/executor/...", "runner/grader/..."), "it knows numbers only", true},
	{"runner/grader/...", waza("runner/journal", "runner/report"), "a grader sees one trial", true},
	{"runner/executor/...", waza("runner/grader/...", "runner/journal", "runner/report"), "an executor does one trial", false},
}

// topLevel are the folders that a newcomer finds, besides those with a dot.
var topLevel = []string{"cmd", "docs", "editors", "eval", "rpc", "runner", "testdata"}

func waza(patterns ...string) []string {
	for i := range patterns {
		patterns[i] = "waza/" + patterns[i]
	}
	return patterns
}

// goFile is what the rules look at: its package and what it imports. Files are
// parsed rather than listed by the go command, so that those of other operating
// systems are held to the rules as well.
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

// matches reports whether an import path or directory is one that pattern means.
func matches(pattern, name string) bool {
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
					found = append(found, fmt.Sprintf("%s: %s may not import %s: %s", file.path, rule.who, imported, rule.because))
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

// A rule that nothing can break holds nothing.
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
		{"runner/grader/program.go", "os/exec", 0},
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
			"%s: wants a package comment that begins with %q", dir, "Package "+name)
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
