package rpc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/wire"
	"waza/runner/report/formats"
)

type exported struct {
	Format, Path, Content, Encoding string
	Bytes                           int
}

// A reply and a file have the same content, in each format.
func TestExport(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, many(2, 2, 1))})
	c.follow(id)
	dir := t.TempDir()
	for _, f := range formats.Exports(nil) {
		path := filepath.Join(dir, f.File)
		require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
		var reply, written exported
		c.must("run.export", map[string]any{"runId": id, "format": f.Name}, &reply)
		c.must("run.export", map[string]any{"runId": id, "format": f.Name, "path": "file://" + path}, &written)
		require.Equal(t, path, written.Path)
		require.Empty(t, written.Content)
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, file, written.Bytes, f.Name)
		content := []byte(reply.Content)
		if f.Name == formats.Archive {
			require.Equal(t, "base64", reply.Encoding)
			content, err = base64.StdEncoding.DecodeString(reply.Content)
			require.NoError(t, err)
			_, err = gzip.NewReader(bytes.NewReader(file))
			require.NoError(t, err)
		} else {
			require.Equal(t, "utf-8", reply.Encoding)
			require.Equal(t, string(file), reply.Content, f.Name)
		}
		require.Len(t, content, reply.Bytes)
	}
	var whole exported
	c.must("run.export", map[string]any{"runId": id}, &whole)
	require.Equal(t, "json", whole.Format)
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, names, "no temporary file remains")
}

// The size of a reply is limited; the size of a file is not.
func TestExportTooLarge(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, `
name: large
config:
  trials_per_task: 6
  executor: command
  command: "head -c 3000000 /dev/zero | tr '\\0' x"
tasks: [{id: a, prompt: x}]
`)})
	c.follow(id)
	m := c.call("run.export", map[string]any{"runId": id})
	require.EqualValues(t, wire.CodeBusy, m.Error.Code)
	require.Contains(t, m.Error.Message, "give a path")
	path := filepath.Join(t.TempDir(), "out.json")
	var written exported
	c.must("run.export", map[string]any{"runId": id, "path": path}, &written)
	require.Greater(t, written.Bytes, 18_000_000)
	var small exported
	c.must("run.export", map[string]any{"runId": id, "format": "junit"}, &small)
	require.Less(t, small.Bytes, 20_000)
}

// Over a socket, run.export could write to any file of the user.
func TestAttackExportOverSocketStaysInside(t *testing.T) {
	t.Parallel()
	c := tcp(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, many(1, 1, 1))})
	c.follow(id)
	one, two, outside := t.TempDir(), t.TempDir(), t.TempDir()
	export := func(path string) message {
		return c.call("run.export", map[string]any{"runId": id, "format": "junit", "path": path})
	}
	require.NotNil(t, export(filepath.Join(one, "early.xml")).Error, "before initialize there are no folders")
	c.must("initialize", map[string]any{"workspaceFolders": []string{one, two}}, nil)
	for _, path := range []string{filepath.Join(one, "a.xml"), filepath.Join(two, "b.xml"), "relative.xml"} {
		require.Nil(t, export(path).Error, path)
	}
	require.FileExists(t, filepath.Join(one, "relative.xml"))
	require.NoError(t, os.Symlink(outside, filepath.Join(one, "link")))
	victim := filepath.Join(outside, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(one, "file")))
	for _, path := range []string{victim, "../" + filepath.Base(outside) + "/victim", "link/victim", "file", filepath.Join(one, "none", "x")} {
		m := export(path)
		require.NotNil(t, m.Error, path)
		require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code, path)
		require.Equal(t, "path", m.Error.Data["parameter"], path)
	}
	content, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}
