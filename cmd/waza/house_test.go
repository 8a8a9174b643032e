package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits of a room. A package or type beyond them does two things.
const (
	mostFiles   = 25   // of a package, tests aside
	mostLines   = 4000 // of a package, tests aside
	mostMethods = 20   // of a type
)

// largeRooms are the packages that may exceed a limit, and why.
var largeRooms = map[string]struct {
	files, lines int
	reason       string
}{
	"cmd/waza": {files: 60, lines: mostLines, reason: "it has one file per subcommand"},
	"eval":     {files: 31, lines: 5000, reason: "a suite has many parts, and each part is a file with its type, defaults and checks"},
}

// largeTypes are the types that may have more methods, and why. The number is
// the most they may have, so that none grows unnoticed.
var largeTypes = map[string]struct {
	methods int
	reason  string
}{
	"eval/assist.scanner":                      {45, "a scanner of YAML has a method per token, and all share its position"},
	"eval/assist.query":                        {42, "a question about a place of a suite has a method per kind of place"},
	"eval/assist.completer":                    {31, "a completion has a method per kind of value"},
	"eval/decode.Decoder":                      {21, "a decoder has a method per kind of value"},
	"rpc/gateway/browser/assistant.Assistants": {44, "one mutex guards assistants, queues, extensions and trials, which change together"},
	"rpc/gateway/agents/hub.Hub":               {40, "one mutex guards agents, their room and those who wait, which change together"},
	"rpc/wire.Stream":                          {25, "reading, writing and questions share one connection and its end"},
	"runner/journal.Run":                       {33, "a run's directory has readers and writers per file"},
	"runner/journal.Store":                     {26, "the state directory has a method per thing kept in it"},
}

// rooms are the packages of eval, runner and rpc: what each is for. A new folder
// needs a line here and one in CONTRIBUTING.md.
var rooms = map[string]string{
	"eval":             "what a suite says",
	"eval/assist":      "completion, hover and links in suites",
	"eval/dataset":     "rows of CSV and JSON Lines files",
	"eval/decode":      "YAML into Go values, with positions and findings",
	"eval/discover":    "finds suites; .gitignore and globs",
	"eval/fields":      "struct tags of options and parameters",
	"eval/files":       "opens and replaces files, within a directory and a limit",
	"eval/fleetaddr":   "which servers the trials of a run travel over",
	"eval/jsonwalk":    "walks over JSON",
	"eval/project":     "what .waza.yaml says",
	"eval/reach":       "which files a suite may read, and where they are",
	"eval/scene":       "what surrounds an agent besides files: repositories, a user who replies, mocks of MCP servers, hooks",
	"eval/schemafiles": "the JSON Schemas themselves",
	"eval/schema":      "JSON Schemas of suites and tasks",
	"eval/skill":       "reads SKILL.md files and finds skills",
	"eval/template":    "variables in texts of suites",
	"eval/readiness":   "whether a skill is ready for use",
	"eval/tokens":      "counts tokens of texts",
	"eval/text":        "shortens texts, counts nouns",
	"eval/relocate":    "copies values with the paths in them changed",
	"eval/registry":    "finds executors and graders by name",

	"runner":            "prepares, starts and follows runs",
	"runner/cache":      "reuses unchanged trials of earlier runs",
	"runner/catalog":    "finds, lists, cleans up and deletes runs",
	"runner/checkout":   "a commit of a git repository into a directory",
	"runner/compare":    "what changed between runs",
	"runner/figure":     "numbers as people read them",
	"runner/history":    "how tasks fared over runs",
	"runner/importing":  "results of other tools as runs",
	"runner/journal":    "the durable record of runs",
	"runner/judging":    "what judges are asked after the trials",
	"runner/mcpmock":    "MCP servers that waza plays for agents",
	"runner/mcptools":   "tools for agents whose functions are in the waza process",
	"runner/pause":      "waits for a time or the end of a context",
	"runner/plan":       "a suite to tasks and trials",
	"runner/propose":    "asks a model for better system prompts",
	"runner/proc":       "processes and their descendants",
	"runner/provider":   "model APIs",
	"runner/record":     "the nouns: Run, Task, Trial, Event, Verdict, Summary",
	"runner/regrade":    "grades recorded trials again, takes reviews",
	"runner/replay":     "events to the state of a run",
	"runner/responder":  "a model that plays the user of an agent",
	"runner/routing":    "how messages find clients",
	"runner/stats":      "intervals, tests, pass@k, pass^k",
	"runner/tally":      "verdicts to numbers",
	"runner/telemetry":  "traces and metrics of runs",
	"runner/trial":      "does one trial",
	"runner/watch":      "runs again when files change",
	"runner/workspace":  "the directory of a trial",
	"runner/runnertest": "helps to test runs",

	"runner/fleet":           "trials done by workers elsewhere: messages, and the owner of a run",
	"runner/fleet/worker":    "does the trials of runs whose owners are elsewhere",
	"runner/fleet/bundle":    "files of runs and trials, moved by content",
	"runner/fleet/engine":    "connections to NATS servers, and the one in the process",
	"runner/fleet/fleettest": "NATS servers for tests",
	"runner/fleet/limits":    "rate limits of providers that processes respect together",
	"runner/fleet/offer":     "what machines offer, and what trials need of them",
	"runner/fleet/seal":      "signs orders and checks them",
	"runner/fleet/survey":    "the state of a fleet: workers, orders, runs",
	"runner/fleet/sim":       "simulates fleets by measured costs",

	"runner/executor":         "what does a trial; one package below it per executor",
	"runner/executor/acp":     "agents that speak the Agent Client Protocol",
	"runner/executor/browser": "browser assistants, and how they reach extensions",
	"runner/executor/command": "a program as an agent",
	"runner/executor/mock":    "canned answers",
	"runner/executor/remote":  "agents that connect to waza serve",
	"runner/executor/router":  "messages to clients that the suite describes",
	"runner/executor/model":   "a model with tools",

	"runner/grader":            "what scores a trial: the contract and the registry",
	"runner/grader/assertion":  "interpreters of Python and JavaScript for assertions",
	"runner/grader/behavior":   "graders of how an agent worked: tools, skills, turns",
	"runner/grader/builtin":    "the list of graders",
	"runner/grader/gradertest": "helps to test graders",
	"runner/grader/judge":      "graders that ask models",
	"runner/grader/match":      "comparisons that families of graders share",
	"runner/grader/output":     "graders of answers and files",
	"runner/grader/person":     "graders that wait for a person",
	"runner/grader/program":    "graders that run code of the suite",

	"runner/record/recordtest": "finds tasks and trials by id in tests",
	"runner/stats/simulation":  "measures how often the statistics err",

	"runner/report":             "runs, comparisons and findings as text, Markdown and JUnit",
	"runner/report/annotations": "comparisons as annotations of GitHub",
	"runner/report/formats":     "the list of formats, and files of them",
	"runner/report/page":        "the HTML page",
	"runner/report/reporttest":  "helps to test reports",
	"runner/report/results":     "results.json, as other tools read it",
	"runner/report/sarif":       "SARIF for code scanning",
	"runner/report/spreadsheet": "CSV, with a row per trial",

	"rpc":          "the JSON-RPC daemon: server, connections, one file per method family",
	"rpc/access":   "compares secrets, delays guesses",
	"rpc/doors":    "methods about the clients of waza serve",
	"rpc/dispatch": "the method table, parameters, error codes",
	"rpc/host":     "the process around a connection",
	"rpc/language": "the language server",
	"rpc/lsp":      "texts, places and findings as language servers speak of them",
	"rpc/mcp":      "tools, resources and prompts for agents, by the Model Context Protocol",
	"rpc/wire":     "bytes in, valid requests out",

	"rpc/gateway/browser":           "the door of browser assistants",
	"rpc/gateway/browser/assistant": "assistants, their sessions and commands, and the loop with tools",
	"rpc/gateway/browser/chromium":  "carries out the tools of browser assistants in Chromium",
	"rpc/gateway/browser/extension": "an extension that connects to a server",

	"rpc/gateway/agents":         "the door of evaluation agents",
	"rpc/gateway/agents/hub":     "gives evaluations to agents",
	"rpc/gateway/agents/client":  "an agent that connects to a server",
	"rpc/gateway/store":          "what the doors remember when the process ends",
	"rpc/gateway/jobs":           "the job stream, JSON-RPC over WebSocket, health and metrics",
	"rpc/gateway/jobs/board":     "the runs of all processes as jobs",
	"rpc/gateway/jobs/dashboard": "the pages for people",
	"rpc/gateway/jobs/token":     "makes and checks the tokens of its clients",
	"rpc/gateway/router":         "the door of the message router",
	"rpc/gateway/router/desktop": "shows notifications to the user",
	"rpc/gateway/door":           "what the WebSocket doors of waza serve share",
	"rpc/gateway/message":        "reads and checks messages of doors",
	"rpc/gateway/doortest":       "helps to test doors",
	"rpc/gateway/echo":           "a door for tests of protocols",
	"rpc/gateway/link":           "how other processes reach the server",
	"rpc/gateway/owned":          "the owners of the server's runs, their queue, and runs to resume",
}

// house is what the limits apply to: the size of each package and type.
type house struct {
	files, lines, methods map[string]int // by folder; methods by folder.Type
}

func newHouse() house { return house{map[string]int{}, map[string]int{}, map[string]int{}} }

// add counts a file that is no test.
func (h house) add(name string, content []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	h.files[dir]++
	h.lines[dir] += strings.Count(string(content), "\n")
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
			h.methods[dir+"."+receiver(f.Recv.List[0].Type)]++
		}
	}
	return nil
}

func receiver(typ ast.Expr) string {
	switch t := typ.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// excesses lists the packages and types beyond the limits, as sentences.
func (h house) excesses() []string {
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(h.files)) {
		files, lines := mostFiles, mostLines
		if large, ok := largeRooms[dir]; ok {
			files, lines = large.files, large.lines
		}
		if n := h.files[dir]; n > files {
			found = append(found, fmt.Sprintf("%s has %d files, the limit is %d", dir, n, files))
		}
		if n := h.lines[dir]; n > lines {
			found = append(found, fmt.Sprintf("%s has %d lines, the limit is %d", dir, n, lines))
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(h.methods)) {
		if n, most := h.methods[typ], max(mostMethods, largeTypes[typ].methods); n > most {
			found = append(found, fmt.Sprintf("%s has %d methods, the limit is %d", typ, n, most))
		}
	}
	return found
}

func TestHouseKeepsItsLimits(t *testing.T) {
	t.Parallel()
	h := newHouse()
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(repositoryRoot, filepath.FromSlash(file.path)))
		require.NoError(t, err)
		require.NoError(t, h.add(file.path, content))
	}
	for _, excess := range h.excesses() {
		t.Error(excess)
	}
	for dir := range largeRooms {
		require.Contains(t, h.files, dir, "an exception for a package that does not exist")
	}
	for typ := range largeTypes {
		require.Contains(t, h.methods, typ, "an exception for a type that does not exist")
	}
}

func TestHouseLimitsBite(t *testing.T) {
	t.Parallel()
	methods := func(typ string, n int) []byte {
		return []byte("package p\n" + strings.Repeat("func (x *"+typ+") f() {}\n", n))
	}
	for _, c := range []struct {
		dir     string
		files   int
		content []byte
		want    []string
	}{
		{"rpc", mostFiles, []byte("package p\n"), nil},
		{"rpc", mostFiles + 1, []byte("package p\n"), []string{"rpc has 26 files, the limit is 25"}},
		{"cmd/waza", mostFiles + 1, []byte("package p\n"), nil},
		{"runner", 1, []byte("package p\n" + strings.Repeat("\n", mostLines)), []string{"runner has 4001 lines, the limit is 4000"}},
		{"runner", 1, methods("thing", mostMethods), nil},
		{"runner", 2, methods("thing[T]", 11), []string{"runner.thing has 22 methods, the limit is 20"}},
		{"rpc/wire", 1, methods("Stream", mostMethods+1), nil},
		{"eval", 1, methods("Stream", mostMethods+1), []string{"eval.Stream has 21 methods, the limit is 20"}},
	} {
		h := newHouse()
		for i := range c.files {
			require.NoError(t, h.add(fmt.Sprintf("%s/f%d.go", c.dir, i), c.content))
		}
		require.Equal(t, c.want, h.excesses())
	}
}

// A new folder says what it is for before anything moves in.
func TestHouseHasTheseRooms(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, file := range goFiles(t) {
		dir := path.Dir(file.path)
		top, _, _ := strings.Cut(dir, "/")
		if !file.isTest() && slices.Contains([]string{"eval", "runner", "rpc"}, top) {
			found[dir] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(rooms)), slices.Sorted(maps.Keys(found)), "rooms in house_test.go, and the folders that exist")
	contributing, err := os.ReadFile(filepath.Join(repositoryRoot, "CONTRIBUTING.md"))
	require.NoError(t, err)
	for dir, reason := range rooms {
		require.NotEmpty(t, reason, dir)
		require.Contains(t, string(contributing), dir+"/ ", "CONTRIBUTING.md lists all rooms")
	}
}
