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
const repositoryRoot = "../.."

// importRules are the rules for imports, read from left to right. A pattern that ends in /...
// also matches everything below it. Rules between layers also apply to tests. Tests are exempt
// from the other rules.
var importRules = []struct {
	who          string
	mayNotImport []string
	reason       string
	inTests      bool
}{
	{"eval/...", waza("runner/...", "rpc/...", "cmd/..."), "it is the lowest layer, and contains what a suite is", true},
	{"runner/...", waza("rpc/...", "cmd/..."), "it runs suites for any caller", true},
	{"rpc/...", waza("cmd/..."), "the command line is one of its users", true},
	{"editors/...", waza("cmd/..."), "nothing imports cmd", true},
	{"cmd/waza/...", waza("cmd/waza"), "the program is at the top; commands and what they share are below it", true},
	{"cmd/waza/exit", waza("cmd/waza/..."), "all commands end with its codes", true},
	{"cmd/waza/terminal", waza("cmd/waza/..."), "it knows terminals only", true},
	{
		"cmd/waza/output",
		waza("cmd/waza/flags", "cmd/waza/help", "cmd/waza/interrupt", "cmd/waza/progress", "cmd/waza/reports", "cmd/waza/review"),
		"all output goes through it", true,
	},

	{"eval/...", []string{"os/exec", "plugin"}, "it starts no programs", false},
	{"eval/...", []string{"net/..."}, "it uses no network", false},
	{"eval/...", []string{"github.com/sourcegraph/jsonrpc2"}, "it knows no JSON-RPC", true},
	{"eval/text", waza("eval/..."), "it knows texts only", false},
	{"eval/fields", waza("eval/..."), "it knows structs only", false},
	{"eval/jsonwalk", waza("eval/..."), "it knows JSON only", false},
	{"eval/project", waza("eval", "eval/assist", "eval/discover"), "eval and eval/discover depend on its settings", false},
	{"eval/discover", waza("eval", "eval/assist"), "eval loads what it finds", false},
	{"eval/dialect/...", waza("eval", "eval/discover", "eval/assist"), "eval and eval/discover read suites through it", false},
	{"eval/decode", waza("eval/discover", "eval", "eval/assist"), "it knows YAML and no suites", true},
	{"runner/...", []string{"github.com/sourcegraph/jsonrpc2", "net/rpc/..."}, "it knows no wire format", true},
	{"rpc/...", []string{"gopkg.in/yaml.v3", "go.yaml.in/yaml/..."}, "it knows no YAML", false},
	{
		"rpc/internal/language",
		append(waza("rpc", "rpc/internal/wire", "rpc/host", "runner/journal", "runner/report"),
			"github.com/sourcegraph/jsonrpc2", "net/...", "os/exec"),
		"it reaches its client and the runs by two interfaces", true,
	},
	{
		"rpc/internal/dispatch",
		append(waza("rpc", "rpc/host", "rpc/internal/lsp", "rpc/internal/language"), "go.lsp.dev/...", "net/..."),
		"it does not know what its handlers do", false, // a test documents the tables of rpc
	},
	{
		"rpc/internal/doors", waza("rpc", "rpc/host", "rpc/internal/lsp", "rpc/internal/language", "runner"),
		"it reaches agents and the router by interfaces", true,
	},
	{
		"rpc/host",
		append(waza("eval/...", "runner/...", "rpc", "rpc/internal/wire", "rpc/internal/dispatch", "rpc/internal/lsp", "rpc/internal/language"),
			"github.com/sourcegraph/jsonrpc2", "encoding/json"),
		"it knows processes and users, and no protocol", true,
	},
	{
		"rpc/internal/peer", append(waza("eval/...", "runner/... except waza/runner/proc", "rpc/..."), "encoding/json"),
		"it knows connections, users and processes only", true,
	},
	{
		"rpc/internal/lsp",
		append(waza("rpc", "rpc/internal/wire", "rpc/internal/dispatch", "rpc/host", "rpc/internal/language"),
			"github.com/sourcegraph/jsonrpc2", "net/http", "os/exec"),
		"it holds no connection", false,
	},
	{"eval/... except eval/dialecttest", waza("eval/dialecttest"), "it is for tests", false},
	{"runner/pause", waza("eval/...", "runner/...", "rpc/...", "cmd/..."), "it knows clocks and contexts only", false},
	{
		"runner/... except runner/runnertest runner/fleet/fleettest",
		waza("runner/proc/proctest", "runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest",
			"runner/grader/internal/gradertest", "runner/report/reporttest"),
		"they are for tests", false,
	},
	{"rpc/... except rpc/gateway/doortest", waza("rpc/gateway/doortest"), "it is for tests", false},
	{"...", waza("rpc/gateway/echo"), "it is for tests", false},
	{
		"rpc/...",
		waza("runner/proc/proctest", "runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest",
			"runner/grader/internal/gradertest", "runner/report/reporttest"),
		"they are for tests", false,
	},
	{
		"cmd/...",
		waza("runner/proc/proctest", "runner/record/recordtest", "runner/runnertest", "runner/fleet/fleettest",
			"runner/grader/internal/gradertest", "runner/report/reporttest"),
		"they are for tests", false,
	},
	{
		"runner/routing",
		append(waza("eval", "runner/executor/...", "runner/grader/...", "runner/journal"), "net/...", "os/exec"),
		"it reaches clients by an interface", false,
	},
	{
		"runner/fleet/seal", append(waza("eval/...", "runner/...", "rpc/...", "cmd/..."), "net/...", "os/exec"),
		"it knows keys and bytes only", false,
	},
	{
		"runner/internal/secrets", append(waza("eval", "runner/...", "rpc/..."), "net/http", "os/exec"),
		"it knows texts only, so that every room can use it", false,
	},
	{
		"runner/suspicion", append(waza("runner/... except waza/runner/record", "rpc/...", "cmd/..."), "net/...", "os/exec"),
		"it sees the end of one trial", false,
	},
	{"runner/stats", waza("eval/...", "runner/executor/...", "runner/grader/..."), "it knows numbers only", true},
	{"runner/grader/...", waza("runner/journal", "runner/report/..."), "a grader sees one trial", true},
	{"runner/executor/...", waza("runner/grader/...", "runner/journal", "runner/report/..."), "an executor does one trial", false},

	{"runner/record", waza("rpc/...", "runner/..."), "all other packages use its types", false},
	{
		"runner/... except runner/attack runner/watch runner/report/... runner/telemetry runner/runnertest", waza("runner"),
		"runner depends on the packages below it", false,
	},
	{
		"runner/... except runner/watch runner/report/... runner/compare runner/history runner/power runner/runnertest",
		waza("runner/watch", "runner/report/...", "runner/compare", "runner/history"),
		"these packages are above runner or beside it", false,
	},
	{"runner/compare", waza("runner/history", "runner/report/...", "runner/watch"), "it does not know where comparisons are shown", false},
	{"runner/history", waza("runner/report/...", "runner/watch"), "it does not know where histories are shown", false},
	{"runner/attack/...", waza("runner/compare", "runner/history", "runner/report/...", "runner/watch"), "it only starts runs", false},
	{"runner/watch", waza("runner/compare", "runner/history", "runner/report/..."), "it only starts runs", false},
	{"runner/report/...", waza("runner/watch", "runner/telemetry"), "it only shows runs", true},
	{"runner/report", waza("runner/report/..."), "the formats depend on it", false},
	{"runner/grader", waza("runner/grader/... except waza/runner/grader/assertion"), "the families of graders implement its contract", false},
	{"runner/executor", waza("runner/executor/..."), "executors implement its contract", false},
	{"runner/executor/remote", []string{"net/...", "os/exec"}, "it reaches agents by an interface", false},
	{"runner/executor/browser", []string{"net/...", "os/exec"}, "it reaches extensions by an interface", false},
	{"runner/executor/router", []string{"net/...", "os/exec"}, "it routes among clients that the suite describes", false},
	{
		"rpc/access", waza("eval/... except waza/eval/text", "runner/...", "rpc/...", "cmd/..."),
		"it knows secrets, names of hosts and log records only", false,
	},
	{
		"rpc/internal/wire",
		waza("eval/... except waza/eval/jsonwalk", "runner/...", "rpc", "rpc/internal/dispatch", "rpc/host", "rpc/internal/lsp",
			"rpc/internal/language"),
		"it does not know what requests ask for", false,
	},
	{"rpc/... except rpc/gateway/...", waza("rpc/gateway/..."), "cmd/waza connects the daemon and the doors", false},
	{
		"rpc/gateway/...",
		waza("rpc", "rpc/internal/dispatch", "rpc/host", "rpc/internal/language", "rpc/internal/lsp", "rpc/internal/wire"),
		"doors import runner and rpc/gateway/door", true,
	},
	{"rpc/gateway/...", waza("rpc/client/..."), "doors know protocols, not the programs at the other end", false},
	{
		"rpc/client/...",
		waza("rpc", "rpc/internal/dispatch", "rpc/host", "rpc/internal/language", "rpc/internal/lsp", "rpc/internal/wire"),
		"clients know the protocols of doors only", true,
	},
	{
		"rpc/gateway/link",
		waza("rpc/gateway/door", "rpc/gateway/store", "rpc/gateway/agents/...", "rpc/gateway/jobs/...",
			"rpc/gateway/browser/...", "rpc/gateway/router/..."),
		"it does not know what the doors do", true,
	},
	{
		"rpc/gateway/internal/lease",
		waza("eval/...", "runner/...", "rpc/gateway/door", "rpc/gateway/internal/message", "rpc/gateway/store", "rpc/gateway/link"),
		"it knows clients, callers and places, and no protocol", true,
	},
	{
		"rpc/gateway/queue",
		waza("rpc/gateway/door", "rpc/gateway/store", "rpc/gateway/agents/...", "rpc/gateway/jobs/...",
			"rpc/gateway/browser/...", "rpc/gateway/router/..."),
		"it knows runs only", false,
	},
	{
		"rpc/gateway/door/...",
		waza("rpc/gateway/agents/...", "rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/...", "rpc/gateway/store/..."),
		"all doors use it", true,
	},
	{
		"rpc/gateway/store/...",
		waza("runner/...", "rpc/gateway/door/...", "rpc/gateway/link/...", "rpc/gateway/agents/...",
			"rpc/gateway/jobs/...", "rpc/gateway/browser/...", "rpc/gateway/router/..."),
		"it knows rows only", true,
	},
	{"eval/jsonwalk", waza("eval/...", "runner/..."), "it knows JSON only", false},
	{"eval/files", waza("eval", "eval/assist", "eval/decode", "eval/discover"), "it knows files only", false},
}

type sibling struct {
	parent  string
	shared  []string // used by all others; they import none of those
	onTop   []string // lists or connects all others
	inTests bool
}

// siblings are the folders whose packages do not import each other. An import between two of
// them is allowed only if the imported one is shared, or the importing one is on top.
var siblings = []sibling{
	{"eval/dialect", []string{"internal"}, []string{"builtin"}, false},
	{"runner/executor", nil, nil, false},
	{"runner/grader", []string{"assertion", "internal"}, []string{"builtin"}, false},
	{"runner/importing", []string{"internal", "source"}, nil, false},
	{"runner/report", []string{"reporttest"}, []string{"formats"}, false},
	{"rpc/gateway", []string{"door", "doortest", "internal", "link", "queue", "store"}, nil, true},
}

// topLevel are the visible folders of the repository.
var topLevel = []string{"cmd", "docs", "editors", "eval", "rpc", "runner", "testdata"}

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

// copiesDir contains copies of libraries. They keep their own style, so that they can be compared
// with their releases.
const copiesDir = ".third_party"

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
					found = append(found, fmt.Sprintf("%s: %s must not import %s: %s", file.path, rule.who, imported, rule.reason))
				}
			}
		}
	}
	return append(found, siblingViolations(files)...)
}

// siblingViolations lists the imports between packages of a folder of [siblings].
func siblingViolations(files []goFile) []string {
	var found []string
	for _, s := range siblings {
		for _, file := range files {
			from, ok := childOf(s.parent, path.Dir(file.path))
			if !ok || slices.Contains(s.onTop, from) || file.isTest() && !s.inTests {
				continue
			}
			for _, imported := range file.imports {
				to, ok := childOf("waza/"+s.parent, imported)
				if ok && to != from && !slices.Contains(s.shared, to) {
					found = append(found, fmt.Sprintf("%s: %s/%s must not import %s/%s: packages of this folder do not know "+
						"each other, except those that siblings lists",
						file.path, s.parent, from, s.parent, to))
				}
			}
		}
	}
	return found
}

// childOf returns the name of the folder directly below parent that contains dir.
func childOf(parent, dir string) (string, bool) {
	below, ok := strings.CutPrefix(dir, parent+"/")
	child, _, _ := strings.Cut(below, "/")
	return child, ok
}

// folderCircles lists the folders that import each other, with the imports that do it. A folder
// includes everything below it. The folders directly below a folder are compared, and the
// package of the folder itself.
func folderCircles(files []goFile) []string {
	type edge struct{ parent, from, to string }
	edges := map[edge]string{}
	graph := map[string]map[string][]string{} // by parent and importing folder
	for _, file := range files {
		if file.isTest() {
			continue
		}
		for _, imported := range file.imports {
			to, ok := strings.CutPrefix(withoutInternal(imported), "waza/")
			if !ok {
				continue
			}
			dir := withoutInternal(path.Dir(file.path))
			e := edge{parent: common(dir, to)}
			e.from, _ = childOf(e.parent, dir)
			e.to, _ = childOf(e.parent, to)
			if e.parent == "" || edges[e] != "" {
				continue // layers have rules of their own
			}
			edges[e] = file.path + " imports " + imported
			if graph[e.parent] == nil {
				graph[e.parent] = map[string][]string{}
			}
			graph[e.parent][e.from] = append(graph[e.parent][e.from], e.to)
		}
	}
	var found []string
	for e, example := range edges {
		if reaches(graph[e.parent], e.to, e.from, map[string]bool{}) {
			found = append(found, fmt.Sprintf("%s, but %s also leads back to %s", example, path.Join(e.parent, e.to), path.Join(e.parent, e.from)))
		}
	}
	slices.Sort(found)
	return found
}

// withoutInternal removes the folders named internal from a path. They say who may import a package
// and are no parts of the program.
func withoutInternal(dir string) string { return strings.ReplaceAll(dir, "/internal/", "/") }

// common returns the deepest folder that contains two directories, which can be one of them.
func common(a, b string) string {
	for a != b && !strings.HasPrefix(b, a+"/") {
		if a = path.Dir(a); a == "." {
			return ""
		}
	}
	return a
}

func reaches(graph map[string][]string, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	return slices.ContainsFunc(graph[from], func(next string) bool { return !seen[next] && reaches(graph, next, to, seen) })
}

// No folder imports a folder that leads back to it, even if the packages do not form a circle.
func TestFoldersFormNoCircle(t *testing.T) {
	t.Parallel()
	for _, v := range folderCircles(goFiles(t)) {
		t.Error(v)
	}
}

func TestFolderCirclesAreFound(t *testing.T) {
	t.Parallel()
	file := func(name, imported string) goFile { return goFile{path: name, imports: []string{imported}} }
	stats := file("runner/stats/mean.go", "waza/runner/figure")
	tally := file("runner/tally/tally.go", "waza/runner/stats")
	require.Empty(t, folderCircles([]goFile{stats, tally, file("runner/run.go", "waza/runner/tally")}))
	found := folderCircles([]goFile{stats, tally, file("runner/stats/simulation/main.go", "waza/runner/tally")})
	require.Len(t, found, 2)
	require.Contains(t, found[0],
		"runner/stats/simulation/main.go imports waza/runner/tally, but runner/tally also leads back to runner/stats")
	require.Len(t, folderCircles([]goFile{
		file("rpc/server.go", "waza/rpc/internal/wire"), file("rpc/internal/wire/wire.go", "waza/rpc/access/secrets"),
		file("rpc/access/access.go", "waza/rpc"),
	}), 3, "a package, and the folders below it")
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for _, v := range violations(goFiles(t)) {
		t.Error(v)
	}
}

// The rules find forbidden imports, and allow others.
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
		{"runner/run.go", "waza/rpc/internal/wire", 1},
		{"runner/run.go", "waza/eval", 0},
		{"runner/grader/program/program.go", "os/exec", 0},
		{"runner/grader/judge/judge.go", "waza/runner/grader/output", 1},
		{"runner/grader/judge/judge.go", "waza/runner/grader/internal/match", 0},
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
		{"rpc/internal/wire/reader.go", "waza/runner", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/internal/wire", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/gateway/agents", 1},
		{"rpc/gateway/jobs/job.go", "waza/rpc/gateway/door", 0},
		{"rpc/gateway/jobs/job.go", "waza/runner", 0},
		{"rpc/gateway/jobs/door.go", "waza/cmd/waza", 1},
		{"runner/run.go", "waza/cmd/waza/exit", 1},
		{"cmd/waza/run/run.go", "waza/cmd/waza/progress", 0},
		{"cmd/waza/progress/block.go", "waza/cmd/waza", 1},
		{"cmd/waza/progress/block.go", "waza/cmd/waza/terminal", 0},
		{"cmd/waza/exit/run.go", "waza/cmd/waza/output", 1},
		{"rpc/eval.go", "gopkg.in/yaml.v3", 1},
		{"rpc/internal/language/lens.go", "waza/rpc", 1},
		{"rpc/internal/language/lens.go", "waza/rpc/internal/dispatch", 0},
		{"rpc/internal/dispatch/call.go", "waza/rpc/internal/language", 1},
		{"rpc/host/peer_linux.go", "waza/rpc/internal/wire", 1},
		{"evaluate/load.go", "os/exec", 0},
	} {
		require.Len(t, violations([]goFile{{path: c.file, imports: []string{c.imports}}}), c.want, "%s imports %s", c.file, c.imports)
	}
}

// Each pattern of each rule finds an import.
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

func TestEveryPackageHasAComment(t *testing.T) {
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

func TestTopLevelFolders(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.FromSlash(repositoryRoot))
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			require.Contains(t, topLevel, entry.Name(), "a folder that topLevel does not list")
		}
	}
}
