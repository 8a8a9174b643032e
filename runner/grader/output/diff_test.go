package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	tree := gradertest.Subject("",
		gradertest.Workspace(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "src/m.py": "def new():\n    return 42\n"}))
	kept := map[string]string{
		"fixtures/a.txt": "one\ntwo\nthree\n", "fixtures/b.txt": "one\nTWO\nthree\n", "golden/a.txt": "x",
		"c/d.txt": "one\ntwo\nthree\n",
	}
	gradertest.RunCases(t, "diff", []gradertest.Case{
		{"equal", "expected_files: [{path: a.txt, snapshot: a.txt}]", kept, tree, gradertest.Passes()},
		{"differs", "expected_files: [{path: a.txt, snapshot: b.txt}]", kept, tree,
			gradertest.Scores(0.5, `a.txt differs from b.txt in line 2: expected "TWO\n", got "two\n"`)},
		{
			"in context_dir", "context_dir: golden\nexpected_files: [{path: a.txt, snapshot: a.txt}]", kept, tree,
			gradertest.Scores(0.5, `expected "x", got "one\n"`),
		},
		{"relative to the suite", "expected_files: [{path: a.txt, snapshot: c/d.txt}]", kept, tree, gradertest.Passes()},
		{
			"snapshot is missing", "expected_files: [{path: a.txt, snapshot: zzz.txt}]", kept, tree,
			gradertest.Errors("snapshot zzz.txt: no such file"),
		},
		{"exists", "expected_files: [{path: a.txt}]", nil, tree, gradertest.Passes()},
		{"does not exist", "expected_files: [{path: b.txt, contains: [x, -y]}]", nil, tree, gradertest.Scores(0, "b.txt does not exist")},
		{"fragments", "expected_files: [{path: src/m.py, contains: ['+def new', 'return 42', '-def old']}]", nil, tree, gradertest.Passes()},
		{"fragments fail", "expected_files: [{path: src/m.py, contains: ['+def old', '-return 42']}]", nil, tree,
			gradertest.Scores(1./3, `does not contain "def old"`, `contains "return 42", which is forbidden`)},
	})
}

func TestDiffUpdatesSnapshots(t *testing.T) {
	t.Parallel()
	b, env := gradertest.Bind(t, "diff", "context_dir: golden\nupdate_snapshots: true\nexpected_files: [{path: "+
		"a.txt, snapshot: a.txt}, {path: a.txt, snapshot: new/b.txt}]",
		map[string]string{"golden/a.txt": "old"})
	s := gradertest.Subject("", gradertest.Workspace(t, map[string]string{"a.txt": "new"}))
	replaces := gradertest.Passes()
	replaces.Feedback = []string{"replaced the snapshot a.txt\nreplaced the snapshot new/b.txt"}
	gradertest.RequireVerdict(t, b, s, replaces)
	for _, name := range []string{"a.txt", "new/b.txt"} {
		data, err := os.ReadFile(filepath.Join(env.Suite.Dir, "golden", name))
		require.NoError(t, err)
		require.Equal(t, "new", string(data))
	}
	left, err := filepath.Glob(filepath.Join(env.Suite.Dir, "golden", ".snapshot*"))
	require.NoError(t, err)
	require.Empty(t, left)
	gradertest.RequireVerdict(t, b, gradertest.Subject("", gradertest.Workspace(t, nil)), gradertest.Scores(0, "a.txt does not exist"))
}

// The grader uses the fixture directory of the task that it grades.
func TestDiffSnapshotOfTheTask(t *testing.T) {
	t.Parallel()
	b, _ := gradertest.Bind(t, "diff", "expected_files: [{path: a.txt, snapshot: s.txt}]",
		map[string]string{"mine/s.txt": "mine", "fixtures/s.txt": "common"})
	in := gradertest.Workspace(t, map[string]string{"a.txt": "mine"})
	gradertest.RequireVerdict(t, b, gradertest.Subject("", in), gradertest.Scores(0.5))
	gradertest.RequireVerdict(t, b,
		gradertest.Subject("", in, func(s *grader.Subject) { s.Task = &eval.Task{ContextDir: "mine"} }),
		gradertest.Passes())
}

func TestDiffOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "diff", []gradertest.OptionCase{
		{"well", "expected_files: [{path: a, contains: [+x]}]", "", nil},
		{"nothing", "{}", "checks-nothing: give expected_files", nil},
		{"escapes", "expected_files: [{path: ../a}]", "escaping-path: leads out", nil},
		{"snapshot escapes", "expected_files: [{path: a, snapshot: ../b}]", "escaping-path: leads out of its directory", nil},
		{"no such directory", "context_dir: nowhere\nexpected_files: [{path: a, snapshot: b}]", "missing-file: no such directory: nowhere", nil},
		{
			"no such snapshot", "context_dir: d\nexpected_files: [{path: a, snapshot: b}]",
			"missing-file: no such file: b", map[string]string{"d/x": ""},
		},
		{"to be made", "context_dir: d\nupdate_snapshots: true\nexpected_files: [{path: a, snapshot: b}]", "", map[string]string{"d/x": ""}},
		{"empty fragment", "expected_files: [{path: a, contains: ['-']}]", "invalid-value: contains[0] is empty", nil},
		{"nothing to update", "update_snapshots: true\nexpected_files: [{path: a}]", "no-effect: update_snapshots", nil},
	})
}
