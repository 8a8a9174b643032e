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
	"waza/runner/report"
)

type exported struct {
	Format, Path, Content, Encoding string
	Bytes                           int
}

// What stands in a reply is what stands in a file, in each format.
func TestExport(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, many(2, 2, 1))})
	c.follow(id)
	dir := t.TempDir()
	for _, f := range report.Exports(nil) {
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
		if f.Name == report.Archive {
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
	require.Empty(t, names, "nothing is left behind")
}

// A reply holds so much and no more; a file takes it all.
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
