package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventReaders may distinguish the events with which trials, tasks and sessions of a run end. None
// of them counts: only runner/replay computes the state of a run, and all others ask it.
var eventReaders = map[string]string{
	"rpc/notify.go":                       "it writes events as notifications",
	"rpc/gateway/jobs/board/follow.go":    "a resumed run starts a session of its job",
	"rpc/gateway/jobs/board/kind.go":      "a message belongs to the end of each case",
	"rpc/gateway/jobs/board/kind_tune.go": "a message belongs to the last task of each cell",
	"cmd/waza/progress/block.go":          "it prints a line per event",
	"cmd/waza/progress/display.go":        "it prints a line per event",
	"runner/attack/attack.go":             "it reports a line per trial",
	"runner/telemetry/metrics.go":         "it passes measurements on",
	"runner/telemetry/spans.go":           "it passes spans on",
	"runner/runnertest/fake.go":           "it is for tests",
}

// countsEvent finds a verdict of an event that is counted.
var countsEvent = regexp.MustCompile(`\.(Add|Remove)\(\w+\.Verdict\)`)

// endsSomething reports whether an expression names an event type with which results end or become
// void.
func endsSomething(n ast.Node) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "record" && (s.Sel.Name == "TrialComplete" || s.Sel.Name == "TaskComplete" || s.Sel.Name == "RunResumed")
}

// One fold counts the events of a run: no package but runner/replay derives results from them.
func TestOneFold(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest() || strings.HasPrefix(f.path, "runner/replay/") || strings.HasPrefix(f.path, "runner/record/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(repositoryRoot, f.path))
		require.NoError(t, err)
		if !strings.Contains(string(content), "record.") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.path, content, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.KeyValueExpr); ok && endsSomething(field.Value) {
				return false // the event is made here
			}
			if endsSomething(n) {
				used[f.path] = true
				require.Contains(t, eventReaders, f.path, "it derives something from events; let runner/replay do that")
			}
			return true
		})
		if eventReaders[f.path] != "" {
			require.NotRegexp(t, countsEvent, string(content), f.path)
		}
	}
	for file := range eventReaders {
		require.True(t, used[file], "%s reads no such event any more", file)
	}
}
