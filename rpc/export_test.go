package rpc_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
	"waza/runner"
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
		if f.IsFolder() {
			continue
		}
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

// A format of several files needs a directory.
func TestExportFolder(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, many(2, 2, 1))})
	c.follow(id)
	for _, f := range formats.Exports(nil) {
		if !f.IsFolder() {
			continue
		}
		dir := filepath.Join(t.TempDir(), "new")
		var written exported
		c.must("run.export", map[string]any{"runId": id, "format": f.Name, "path": dir}, &written)
		require.Contains(t, written.Path, dir)
		size := 0
		require.NoError(t, filepath.WalkDir(written.Path, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".waza-") {
				info, err := e.Info()
				size += int(info.Size())
				return err
			}
			return err
		}))
		require.Positive(t, size)
		require.Equal(t, size, written.Bytes)

		m := c.call("run.export", map[string]any{"runId": id, "format": f.Name})
		require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code)
		require.Contains(t, m.Error.Message, "several files")
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
		m = c.call("run.export", map[string]any{"runId": id, "format": f.Name, "path": file})
		require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code)
	}
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
  sandbox: off
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

// Exports could replace any file of the state directory: journals, and the token of the owner.
func TestAttackExportOverFilesOfWaza(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	s := newServer(t, rpc.Options{Runner: r})
	owner, other := stdio(t, s), tcp(t, s)
	id := owner.start(map[string]any{"path": suite(t, many(1, 1, 1))})
	owner.follow(id)
	token := filepath.Join(state, "serve.token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	work := t.TempDir()
	other.must("initialize", map[string]any{"workspaceFolders": []string{work, state}}, nil)
	require.NoError(t, os.Symlink(state, filepath.Join(work, "alias")))
	require.NoError(t, os.Symlink(token, filepath.Join(work, "link")))
	require.NoError(t, os.Link(token, filepath.Join(work, "hard")))
	require.NoError(t, os.MkdirAll(filepath.Join(state, "exports", id), 0o700))
	require.NoError(t, os.Symlink("../../runs", filepath.Join(state, "exports", id, "runs")))
	before := tree(t, state)
	for _, c := range []*client{owner, other} {
		for _, path := range []string{
			token, filepath.Join(state, "new"), filepath.Join(state, "record.key"), filepath.Join(state, "runs", id, "journal.jsonl"),
			filepath.Join(state, "runs", id, "new.xml"), filepath.Join(state, "exports", "..", "serve.token"),
			filepath.Join(work, "alias", "serve.token"), filepath.Join(state, "exports", id, "runs", id, "result.json"),
		} {
			m := c.call("run.export", map[string]any{"runId": id, "format": "junit", "path": path})
			require.NotNil(t, m.Error, path)
			require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code, path)
		}
	}
	// A link and another name are replaced; the file they lead to is not.
	owner.must("run.export", map[string]any{"runId": id, "format": "junit", "path": filepath.Join(work, "link")}, nil)
	owner.must("run.export", map[string]any{"runId": id, "format": "junit", "path": filepath.Join(work, "hard")}, nil)
	require.Equal(t, before, tree(t, state))
	for _, c := range []*client{owner, other} {
		c.must("run.export", map[string]any{"runId": id, "format": "junit", "path": filepath.Join(state, "exports", id, "report.xml")}, nil)
	}
	require.FileExists(t, filepath.Join(state, "exports", id, "report.xml"))
}

// The token of another person wrote wherever the user of the server can write: the person chose
// the workspace folders.
func TestAttackExportOfAnotherPerson(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	s := newServer(t, rpc.Options{Runner: r})
	owner := stdio(t, s)
	path := suite(t, many(1, 1, 1))
	theirs := owner.start(map[string]any{"path": path})
	owner.follow(theirs)
	mine := owner.start(map[string]any{"path": path})
	owner.follow(mine)
	here, there := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.ServeStream(t.Context(), there,
			rpc.Client{Authorised: true, View: runner.View{User: "ann", Sees: func(id string) bool { return id == theirs }}})
	}()
	c := &client{TB: t, w: here, r: here, scan: bufio.NewReaderSize(here, 1<<20)}
	t.Cleanup(func() {
		here.Close()
		<-ended
	})
	home := t.TempDir()
	c.must("initialize", map[string]any{"workspaceFolders": []string{"/", home}}, nil)
	for _, path := range []string{
		filepath.Join(home, "x.xml"), filepath.Join(state, "serve.token"),
		filepath.Join(state, "exports", mine, "x.xml"), "../" + mine + "/x.xml", "../../serve.token",
	} {
		m := c.call("run.export", map[string]any{"runId": theirs, "format": "junit", "path": path})
		require.NotNil(t, m.Error, path)
		require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code, path)
		m = c.call("run.export", map[string]any{"runId": theirs, "format": "skill-creator", "path": path})
		require.NotNil(t, m.Error, path)
		require.EqualValues(t, wire.CodeInvalidParams, m.Error.Code, path)
	}
	require.NotNil(t, c.call("run.export", map[string]any{"runId": mine, "path": "x.json"}).Error)
	var written exported
	c.must("run.export", map[string]any{"runId": theirs, "format": "junit", "path": "report.xml"}, &written)
	require.Equal(t, filepath.Join(state, "exports", theirs, "report.xml"), written.Path)
	require.FileExists(t, written.Path)
	owner.must("run.rm", map[string]any{"runId": theirs}, nil)
	require.NoFileExists(t, written.Path)
}

// tree returns the contents of all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		if !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}
