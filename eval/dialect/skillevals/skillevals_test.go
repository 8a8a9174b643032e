package skillevals_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/files"
)

var update = flag.Bool("update", false, "write the expected texts of testdata")

// Each archive of testdata has suites and the file want: for each suite its head, tasks and findings.
func TestShapes(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			outside := t.TempDir()
			dir := filepath.Join(outside, "a", "b")
			var suites, sources []txtar.File
			want := ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				sources = append(sources, f)
				if filepath.Base(f.Name) == "evals.json" {
					suites = append(suites, f)
				}
				path := filepath.Join(dir, filepath.FromSlash(f.Name))
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, f.Data, 0o600))
			}
			places := strings.NewReplacer(filepath.ToSlash(dir), "ROOT", filepath.ToSlash(outside), "OUTSIDE")
			var got strings.Builder
			for _, s := range suites {
				fmt.Fprintf(&got, "# %s\n%s", s.Name,
					places.Replace(load(t, filepath.Join(dir, filepath.FromSlash(s.Name)))))
			}
			if *update {
				sources = append(sources, txtar.File{Name: "want", Data: []byte(got.String())})
				archive.Files = sources
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
				return
			}
			require.Equal(t, want, got.String())
		})
	}
}

// load describes a suite, and requires that its translation to an eval.yaml has the same tasks.
func load(t *testing.T, path string) string {
	t.Helper()
	suite, found, err := eval.Load(path, eval.Options{})
	require.NoError(t, err)
	var b strings.Builder
	if suite != nil {
		tasks := describe(t, suite)
		b.WriteString(tasks)
		if !found.HasErrors() {
			root, err := suite.Node()
			require.NoError(t, err)
			data, err := dialect.Encode(root)
			require.NoError(t, err)
			other := filepath.Join(filepath.Dir(path), "eval.yaml")
			require.NoError(t, os.WriteFile(other, data, 0o600))
			again, faults, err := eval.Load(other, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, faults.Errors(), "%s", data)
			require.Equal(t, tasks, describe(t, again), "%s", data)
		}
	}
	for _, d := range found {
		fmt.Fprintf(&b, "%d:%d: %s: %s\n", d.Line, d.Column, d.Severity, d.Message)
	}
	return b.String()
}

func describe(t *testing.T, s *eval.Suite) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "suite %s, skill %q\n", s.Name, s.Skill)
	for _, task := range s.Tasks {
		fmt.Fprintf(&b, "task %s: %q", task.ID, append([]string{task.Inputs.Prompt}, task.Inputs.FollowUpPrompts...))
		if task.Name != task.ID {
			fmt.Fprintf(&b, " named %s", task.Name)
		}
		b.WriteByte('\n')
		for _, f := range task.Inputs.Files {
			from := f.From
			if f.Content != nil {
				from = fmt.Sprintf("%q", *f.Content)
			}
			fmt.Fprintf(&b, "  file %s: %s\n", f.Path, from)
		}
		for _, g := range task.Effective {
			config, err := json.Marshal(g.Config)
			require.NoError(t, err)
			fmt.Fprintf(&b, "  %s %s, weight %v: %s\n", g.Type, g.Name, g.Weight, config)
		}
		if task.Blocked != "" {
			fmt.Fprintf(&b, "  blocked: %s\n", task.Blocked)
		}
	}
	if tests := s.Triggers; tests != nil {
		for _, p := range tests.ShouldTrigger {
			fmt.Fprintf(&b, "triggers: %s\n", p.Prompt)
		}
		for _, p := range tests.ShouldNotTrigger {
			fmt.Fprintf(&b, "does not trigger: %s, %s\n", p.Prompt, p.Reason)
		}
	}
	return b.String()
}

// The skill evals by other authors, beside the checkout, have no errors.
func TestSharedSuites(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.FromSlash("../../../../shared/suites/formats/skill-*/evals/evals.json"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, path := range found {
		suite, diags, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Empty(t, diags.Errors(), path)
		require.Equal(t, "skill-evals", suite.Format)
		require.NotEmpty(t, suite.Tasks, path)
		for _, task := range suite.Tasks {
			require.NotEmpty(t, task.Inputs.Prompt, path)
			require.NotEmpty(t, task.Effective, path)
		}
	}
}

// Repeated ids cost no more than other ids.
func TestManyRepeatedIDs(t *testing.T) {
	t.Parallel()
	const cases = 5000
	path := filepath.Join(t.TempDir(), "evals.json")
	content := "[" + strings.TrimSuffix(strings.Repeat(`{"id": 1, "prompt": "a"},`, cases), ",") + "]"
	suite, _, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: []byte(content)}}})
	require.NoError(t, err)
	require.Len(t, suite.Tasks, cases)
	require.Equal(t, fmt.Sprintf("1-%d", cases), suite.Tasks[cases-1].ID)
}

// No text makes the loader fail, and a suite without errors can run.
func FuzzTranslate(f *testing.F) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	require.NoError(f, err)
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		for _, a := range archive.Files {
			if filepath.Base(a.Name) == "evals.json" {
				f.Add(a.Data)
			}
		}
	}
	path := filepath.Join(f.TempDir(), "s", "evals", "evals.json")
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, found, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
		if suite == nil {
			require.True(t, found.HasErrors(), "neither a suite nor an error")
			return
		}
		require.LessOrEqual(t, len(suite.Tasks), len(data), "more tasks than bytes")
		if suite.Format != "" && !found.HasErrors() {
			root, err := suite.Node()
			require.NoError(t, err)
			_, err = dialect.Encode(root)
			require.NoError(t, err)
		}
	})
}
