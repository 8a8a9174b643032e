package harbor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/dialect/harbor"
)

func absent(string, string) (string, error) { return "", errors.New("none") }

// Sets name tasks on this machine, in their order and each once.
func TestSets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, task := range []string{"a", "tasks/b", "org/c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, task), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, task, "task.toml"), nil, 0o644))
	}
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "task.toml"), nil, 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "linked")))
	fetched := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(fetched, "tasks", "z"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(fetched, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(fetched, "tasks", "z", "task.toml"), nil, 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(fetched, "linked")))
	checkOut := func(url, commit string) (string, error) {
		if url == "here" && commit == "v1" {
			return fetched, nil
		}
		return absent(url, commit)
	}
	for _, c := range []struct{ name, content, tasks, finding string }{
		{"registry.json", `[{"name": "s", "tasks": [{"name": "b", "path": "tasks/b"}, {"path": "a"}]}, {"tasks": [{"path": "./a"}]}]`, "tasks/b a", ""},
		{"registry.json", `[{"name": "s", "version": "1.0", "description": "d", "tasks": [{"name": "a", "path": "a"}], "metrics": [{"type": "mean"}]}]`, "a", ""},
		{"registry.json", `[{"tasks": [{"name": "y", "git_url": "https://example.com/r", "git_commit_id": "0123", "path": "y"}]}]`, "", `the task "y": none`},
		{"registry.json", `[{"tasks": [{"name": "x", "git_url": "https://example.com/r.git", "path": "a"}]}]`, "", `the task "x": none`},
		{"registry.json", `[{"tasks": [{"name": "z", "git_url": "here", "git_commit_id": "v1", "path": "tasks/z"}, {"path": "a"}]}]`, "CHECKOUT/tasks/z a", ""},
		{"registry.json", `[{"tasks": [{"name": "z", "git_url": "here", "git_commit_id": "v1", "path": "../z"}]}]`, "", "the folder ../z is outside of the repository"},
		{"registry.json", `[{"tasks": [{"name": "z", "git_url": "here", "git_commit_id": "v1", "path": "linked"}]}]`, "", "the folder linked is outside of the repository"},
		{"registry.json", `[{"tasks": [{"name": "z", "git_url": "here", "git_commit_id": "v1"}]}]`, "", `the task "z" has no path`},
		{"registry.json", `[{"tasks": [{"path": "none"}]}]`, "", "no folder none with a task.toml"},
		{"registry.json", `[{"tasks": [{"path": "../outside"}]}]`, "", "the folder ../outside is outside of the repository"},
		{"registry.json", `[{"tasks": [{"path": "/tmp"}]}]`, "", "the folder /tmp is outside of the repository"},
		{"registry.json", `[{"tasks": [{"path": "linked"}]}]`, "", "the folder linked is outside of the repository"},
		{"registry.json", `[{"tasks": [{"name": "x"}]}]`, "", `the task "x" has no path`},
		{"registry.json", `{}`, "", "the set names no tasks"},
		{"registry.json", `[`, "", ""},
		{"dataset.toml", "[dataset]\nname = \"o/s\"\n[[tasks]]\nname = \"org/c\"\ndigest = \"sha256:0\"\n[[tasks]]\nname = \"org/b\"\n[[tasks]]\nname = \"x/a\"\n", "org/c tasks/b a", "digest has no effect"},
		{"dataset.toml", "[dataset]\nname = \"o/s\"\ndescription = \"d\"\nauthors = [{name = \"Ada\"}]\nkeywords = [\"k\"]\n[[tasks]]\nname = \"org/a\"\n[[files]]\npath = \"metric.py\"\ndigest = \"sha256:0\"\n", "a", ""},
		{"dataset.toml", "[[tasks]]\nname = \"../a\"\n", "", "a task has no name such as org/name"},
		{"dataset.toml", "[[tasks]]\nname = \"org/none\"\n", "", "no folder org/none with a task.toml"},
	} {
		file := filepath.Join(dir, c.name)
		require.NoError(t, os.WriteFile(file, []byte(c.content), 0o644))
		require.True(t, harbor.IsSet(file))
		paths, found := harbor.TasksOf(file, checkOut)
		var tasks []string
		for _, path := range paths {
			if rel, err := filepath.Rel(fetched, filepath.Dir(path)); err == nil && filepath.IsLocal(rel) {
				tasks = append(tasks, "CHECKOUT/"+filepath.ToSlash(rel))
				continue
			}
			rel, err := filepath.Rel(dir, filepath.Dir(path))
			require.NoError(t, err)
			tasks = append(tasks, filepath.ToSlash(rel))
		}
		require.Equal(t, c.tasks, strings.Join(tasks, " "), c.content)
		require.Contains(t, strings.Join(messages(found), "\n"), c.finding, c.content)
		require.Equal(t, c.tasks == "", found.HasErrors(), c.content)
	}
	require.False(t, harbor.IsSet("tasks/task.toml"))
	_, found := harbor.TasksOf(filepath.Join(dir, "none", "registry.json"), absent)
	require.True(t, found.HasErrors())
}

// No file that names a set makes its reader fail, and all tasks that it returns exist.
func FuzzSets(f *testing.F) {
	f.Add(`[{"tasks": [{"path": "a"}, {"git_url": 3, "path": "/"}]}]`, "[[tasks]]\nname = 'o/a'\n[[tasks]]\nname = ''")
	f.Add(`{"tasks": 1}`, "tasks = [1, {name = '../..'}]")
	f.Fuzz(func(t *testing.T, registry, dataset string) {
		dir := t.TempDir()
		for name, content := range map[string]string{"registry.json": registry, "dataset.toml": dataset, "task.toml": ""} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
		for _, name := range []string{"registry.json", "dataset.toml"} {
			paths, found := harbor.TasksOf(filepath.Join(dir, name), absent)
			require.True(t, len(paths) > 0 || found.HasErrors())
			for _, path := range paths {
				require.FileExists(t, path)
			}
		}
	})
}
