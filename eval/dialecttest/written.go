package dialecttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	"waza/eval/text"
)

// requireSameWhenWritten writes a suite in its own format beside it, if waza writes the format. Read again,
// it must have the same head and the same tasks, apart from those with a loss and those that are blocked.
// It returns a line for each loss of the others.
func requireSameWhenWritten(t *testing.T, suite *eval.Suite) string {
	t.Helper()
	i := slices.IndexFunc(builtin.All(), func(d *dialect.Dialect) bool { return d.Name == suite.Format && d.Write != nil })
	if i < 0 {
		return ""
	}
	losses, again := Rewrite(t, suite, builtin.All()[i])
	if len(suite.Tasks) == 0 && suite.Triggers == nil {
		return ""
	}
	before, after := sections(t, suite), sections(t, again)
	var b strings.Builder
	lost := map[string]bool{}
	blocked := map[string]bool{}
	for _, task := range suite.Tasks {
		blocked[task.ID] = task.Blocked != ""
	}
	for _, l := range losses {
		id, _, inTask := strings.Cut(strings.TrimPrefix(l.Part, "task "), ": ")
		if inTask = inTask && strings.HasPrefix(l.Part, "task "); inTask && blocked[id] {
			continue
		}
		if !inTask {
			id = ""
		}
		lost[id] = true
		severity := "warning"
		if l.Verdict {
			severity = "error"
		}
		fmt.Fprintf(&b, "%s: %s\n", severity, l)
	}
	require.Len(t, again.Tasks, len(suite.Tasks))
	for id, section := range before {
		if !lost[id] && !blocked[id] {
			require.Equal(t, section, after[id], "task %q", id)
		}
	}
	return b.String()
}

// Rewrite writes a suite in a format, in place of its file or beside it, and reads it again. It restores
// the file. A format with folders needs a suite of one task.
func Rewrite(t *testing.T, suite *eval.Suite, d *dialect.Dialect) (losses []dialect.Loss, again *eval.Suite) {
	t.Helper()
	dir := filepath.Dir(suite.File)
	file := filepath.Join(dir, "written"+filepath.Ext(d.FileName))
	if d.Name == suite.Format && d.FileName != "" {
		file = suite.File // because places in a project count
		original, err := os.ReadFile(file)
		require.NoError(t, err)
		defer func() { require.NoError(t, os.WriteFile(file, original, 0o600)) }()
	}
	doc := suite.Document(file)
	written, err := d.Write(doc)
	require.NoError(t, err)
	path := file
	if d.FileName == "" {
		defer os.RemoveAll(file)
	} else {
		written[0].Path = filepath.Base(file)
	}
	for _, f := range written {
		target := filepath.Join(dir, filepath.FromSlash(f.Path))
		if d.FileName == "" {
			target = filepath.Join(file, filepath.FromSlash(f.Path))
			if filepath.Base(target) == "task.toml" {
				path = target
			}
		}
		put(t, target, f)
	}
	again, found, err := eval.Load(path, eval.Options{})
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, found.Errors(), "%s", content)
	require.NotNil(t, again, "%s", content)
	return doc.Losses, again
}

// put writes a file, or copies a file or a folder.
func put(t *testing.T, path string, f dialect.File) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if f.Content != nil {
		require.NoError(t, os.WriteFile(path, []byte(*f.Content), 0o600))
		return
	}
	info, err := os.Stat(f.Source)
	require.NoError(t, err)
	if info.IsDir() {
		require.NoError(t, os.CopyFS(path, os.DirFS(f.Source)))
		return
	}
	data, err := os.ReadFile(f.Source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

var configLine = text.Pattern(`(?m)^  config: .*\n?`)

// sections returns the parts of a description: those of tasks by their ids, and "" for the rest.
func sections(t *testing.T, s *eval.Suite) map[string]string {
	t.Helper()
	parts := map[string]string{}
	all := "\n" + Describe(t, s)
	for _, task := range s.Tasks {
		_, rest, ok := strings.Cut(all, "\ntask "+task.ID+": ")
		require.True(t, ok, task.ID)
		section, _, _ := strings.Cut(rest, "\ntask ")
		lines := strings.Split(strings.TrimSuffix(section, "\n"), "\n")
		first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  file ") })
		for end := first; first >= 0 && end <= len(lines); end++ {
			if end == len(lines) || !strings.HasPrefix(lines[end], "  file ") {
				slices.Sort(lines[first:end]) // files have no order
				break
			}
		}
		parts[task.ID] = strings.Join(lines, "\n")
	}
	head, _, _ := strings.Cut(strings.TrimSuffix(all, "\n"), "\ntask ")
	config, err := json.Marshal(s.Config) // values that are the defaults can be absent
	require.NoError(t, err)
	parts[""] = configLine().ReplaceAllString(head+"\n", "") + string(config)
	return parts
}
