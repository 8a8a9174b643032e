package bundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/reach"
	"waza/runner/executor/command"
	"waza/runner/record"
)

func TestDecodeManifest(t *testing.T) {
	t.Parallel()
	limits := Limits{FileBytes: 10, Bytes: 15, Files: 5}
	hash := strings.Repeat("a", 64)
	top := `{"path":"0","dir":true},`
	for _, c := range []struct{ entries, want string }{
		{``, ""},
		{`{"path":"0","dir":true,"mode":493}`, ""},
		{
			top + `{"path":"0/a","size":1,"data":"YQ=="},{"path":"0/b","dir":true},{"path":"0/b/c","size":10,"hash":"` + hash +
				`"},{"path":"0/b/d","link":"../a"}`,
			"",
		},
		{`{"path":"../a"}`, "not a portable path"},
		{`{"path":"/etc"}`, "not a portable path"},
		{`{"path":"0/../../a"}`, "not a portable path"},
		{`{"path":"0\\..\\a"}`, "not a portable path"},
		{`{"path":"` + strings.Repeat("0/", 3000) + `a"}`, "not a portable path"},
		{`{"path":"` + strings.Repeat("0", 300) + `"}`, "not a portable path"},
		{`{"path":"etc","dir":true}`, "numbered directory"},
		{`{"path":"00","dir":true}`, "numbered directory"},
		{`{"path":"g0","dir":true}`, "numbered directory"},
		{`{"path":"0","size":1,"data":"YQ=="}`, "numbered directory"},
		{`{"path":"0/a/b"}`, "must be listed after its directory"},
		{top + `{"path":"0/a"},{"path":"0/a/b"}`, "must be listed after its directory"},
		{top + `{"path":"0/a","link":"b"},{"path":"0/a/b"}`, "must be listed after its directory"},
		{top + top + `{"path":"0/a"}`, "listed twice"},
		{top + `{"path":"0/a","mode":2559}`, "must contain only permissions"},
		{top + `{"path":"0/a","size":-1}`, "-1 bytes"},
		{top + `{"path":"0/a","size":11,"hash":"` + hash + `"}`, "size must be at most 10 bytes"},
		{top + `{"path":"0/a","size":9,"hash":"` + hash + `"},{"path":"0/b","size":9,"hash":"` + hash + `"}`, "must have at most 15 bytes"},
		{top + `{"path":"0/a","size":2,"data":"YQ=="}`, "content and size do not match"},
		{top + `{"path":"0/a","size":1,"data":"YQ==","hash":"` + hash + `"}`, "content and size do not match"},
		{top + `{"path":"0/a","size":1,"hash":"` + hash[1:] + `"}`, "invalid hash"},
		{top + `{"path":"0/a","dir":true,"size":1}`, "directory must have no content"},
		{top + `{"path":"0/a","link":"b","size":1}`, "link must have no content"},
		{top + `{"path":"0/a","link":"/etc"}`, "leads out"},
		{top + `{"path":"0/a","link":".."}`, "leads out"},
		{top + `{"path":"0/a","link":"b/../../.."}`, "leads out"},
		{top + `{"path":"0/a","link":"b/.."}`, "leads out"},
		{top + strings.Repeat(top, 5) + `{"path":"0/a"}`, "exceed the limit of 5"},
	} {
		_, err := decode([]byte(`{"version":1,"entries":[`+c.entries+`]}`), limits)
		if c.want == "" {
			require.NoError(t, err, c.entries)
		} else {
			require.ErrorContains(t, err, c.want, c.entries)
		}
	}
	_, err := decode([]byte(`{"version":2}`), limits)
	require.ErrorContains(t, err, "the same version of waza")
	_, err = decode([]byte(`{"version":1,"repos":[{"commits":["HEAD"]}]}`), limits)
	require.ErrorContains(t, err, "invalid commit id")
	_, err = decode([]byte(`[`), limits)
	require.ErrorContains(t, err, "manifest")
}

// For every manifest, unpacked files and targets of links stay in its directory.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"entries":[{"path":"0","dir":true},{"path":"0/a","size":1,"data":"YQ=="},` +
		`{"path":"0/l","link":"./a"},{"path":"0/d","dir":true},{"path":"0/d/l","link":"../a"}]}`))
	f.Add([]byte(`{"version":1,"entries":[{"path":"0","dir":true},{"path":"0/l","link":"."},{"path":"0/l/x"}]}`))
	f.Add([]byte(`{"version":1,"entries":[{"path":"0","dir":true},{"path":"0/l","link":"m/../.."},{"path":"0/m","link":"l"}]}`))
	f.Add([]byte(`{"version":1,"entries":[{"path":"0","dir":true,"mode":0},{"path":"0/..","dir":true}],"repos":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		limits := Limits{FileBytes: 1000, Bytes: 1000, Files: 20}
		m, err := decode(b, limits)
		if err != nil {
			return
		}
		m.Repos = nil // would start git
		for i := range m.Entries {
			if m.Entries[i].Hash != "" {
				return // no such object
			}
		}
		above := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(above, "outside"), []byte("outside"), 0o600))
		dir := filepath.Join(above, "in")
		require.NoError(t, os.Mkdir(dir, 0o700))
		u := &unpacker{ctx: t.Context(), limits: limits, manifest: m, dir: dir}
		if err := u.repair(dir, true); err != nil {
			return // for example, names that the file system considers equal
		}
		list, err := os.ReadDir(above)
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, e := range m.Entries {
			path := filepath.Join(dir, filepath.FromSlash(e.Path))
			if real, err := filepath.EvalSymlinks(path); err == nil && !reach.Within(dir, real) {
				t.Errorf("%s is %s", e.Path, real)
			}
		}
		require.NoError(t, u.repair(dir, true), "unpacked files match the manifest")
	})
}

// No path of a received order leads out of the bundle.
func FuzzIncoming(f *testing.F) {
	for _, path := range []string{
		"waza-bundle:/0/a", "waza-bundle:/0/../../etc/passwd", "waza-bundle:/", "/etc/passwd", "waza-bundle://0",
		"waza-bundle:/g0", "waza-bundle:/0\x00", "sh waza-bundle:/0/a waza-bundle:/../x",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		const dir = "/cache/bundle"
		c := incoming(dir)
		o := &record.Order{
			Suite: &eval.Suite{Places: reach.Places{File: path}}, Task: &eval.Task{Skills: []string{path}},
			Repos: []record.Checkout{{Source: path}}, Fixtures: map[string]string{path: "x"},
		}
		if moved, err := o.Relocate(c); err == nil && path != "" {
			for _, got := range []string{moved.Suite.File, moved.Task.Skills[0], moved.Repos[0].Source} {
				if !reach.Within(dir, got) || got == dir {
					t.Errorf("%q leads to %q", path, got)
				}
			}
			for got := range moved.Fixtures {
				if !reach.Within(dir, got) {
					t.Errorf("%q leads to %q", path, got)
				}
			}
		}
		words := &record.Order{Suite: &eval.Suite{}, Task: &eval.Task{}, Options: &command.Options{Command: command.Line{Args: []string{path}}}}
		moved, err := words.Relocate(c)
		if err != nil {
			return
		}
		got := moved.Options.(*command.Options).Command.Args[0]
		for _, word := range strings.FieldsFunc(got, reach.BetweenWords) {
			if strings.HasPrefix(word, scheme) {
				t.Errorf("%q is left in %q", word, got)
			}
			if strings.HasPrefix(word, dir) && !strings.Contains(path, dir) && !reach.Within(dir, word) {
				t.Errorf("%q leads to %q", path, word)
			}
		}
		_, err = json.Marshal(moved)
		require.NoError(t, err)
	})
}
