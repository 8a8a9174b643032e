package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"waza/eval/files"
	"waza/runner/internal/secrets"
	"waza/runner/record"
)

// Limits on the kept parts of a workspace. Everything beyond them is named, so that nobody draws
// conclusions from its absence.
const (
	maxSnapshotEntries = 20_000
	maxSnapshotBytes   = 64 << 20 // of the contents of one trial
	maxSnapshotFile    = 16 << 20
	maxSnapshotDepth   = 64
)

// snapshotSkips are directories whose content is not kept: it is large, was downloaded rather
// than created, and can be downloaded again.
var snapshotSkips = map[string]bool{"node_modules": true, ".venv": true}

// A Keeper stores contents of files, like the [journal.Blobs] of a run. It is safe for
// concurrent use.
type Keeper interface {
	// Put stores a content and returns its position. It neither changes nor retains the slice.
	Put(content []byte) (record.Blob, error)
}

// Snapshotter takes a snapshot.
type Snapshotter struct {
	ctx     context.Context
	root    *os.Root
	Blobs   Keeper
	Secrets *secrets.Redactor
	snap    *record.Snapshot
	bytes   int64 // of contents, so far
}

// takeSnapshot records the content of a workspace, and the fate of the files that were put into
// it. It stores contents without secrets. It always returns a snapshot; after an error the
// snapshot is incomplete.
func takeSnapshot(ctx context.Context, root *os.Root, given []givenFile, blobs Keeper, secrets *secrets.Redactor) *record.Snapshot {
	s := &Snapshotter{ctx: ctx, root: root, Blobs: blobs, Secrets: secrets, snap: &record.Snapshot{Entries: []record.SnapshotEntry{}}}
	if err := s.walk(".", 0); err != nil {
		s.snap.Incomplete = err.Error()
	}
	s.compare(given)
	return s.snap
}

// Capture records the content of a directory, without its secrets, as if an agent had created it.
func Capture(ctx context.Context, dir string, blobs Keeper, secrets *secrets.Redactor) (*record.Snapshot, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return takeSnapshot(ctx, root, nil, blobs, secrets), nil
}

// walk adds the contents of a directory. An error ends the snapshot.
func (s *Snapshotter) walk(dir string, depth int) error {
	entries, err := s.list(dir)
	if err != nil {
		return s.omitDir(dir, err)
	}
	for _, e := range entries {
		switch {
		case s.ctx.Err() != nil:
			return errors.New("the trial ended before the whole workspace was recorded")
		case len(s.snap.Entries) == maxSnapshotEntries:
			return fmt.Errorf("the workspace contains more than %d files and directories", maxSnapshotEntries)
		case !utf8.ValidString(e.Name()) || strings.ContainsRune(e.Name(), '\\'):
			return fmt.Errorf("the workspace contains a file name that cannot be recorded: %q", e.Name())
		}
		if err := s.take(path.Join(dir, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

// list reads a directory, at most one entry more than the limit allows.
func (s *Snapshotter) list(dir string) ([]fs.DirEntry, error) {
	f, err := s.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxSnapshotEntries + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	sortEntries(entries)
	return entries, err
}

// omitDir records that the contents of a directory are unknown.
func (s *Snapshotter) omitDir(dir string, err error) error {
	if dir == "." || len(s.snap.Entries) == 0 {
		return fmt.Errorf("cannot read the workspace: %w", files.WithoutPath(err))
	}
	s.snap.Entries[len(s.snap.Entries)-1].Omitted = files.WithoutPath(err).Error()
	return nil
}

// take adds one entry and its contents.
func (s *Snapshotter) take(name string, e fs.DirEntry, depth int) error {
	info, err := s.root.Lstat(name)
	if err != nil {
		return fmt.Errorf("cannot read the workspace: %s: %w", name, files.WithoutPath(err))
	}
	entry := record.SnapshotEntry{Path: name, Type: record.EntryOther, Mode: uint32(info.Mode().Perm())}
	switch mode := info.Mode(); {
	case mode.IsDir():
		entry.Type = record.EntryDir
	case mode.IsRegular():
		entry.Type = record.EntryFile
		entry.Blob, entry.Omitted = s.content(name, info)
	case mode&fs.ModeSymlink != 0:
		entry.Type = record.EntryLink
		if entry.Link, err = s.root.Readlink(name); err != nil || !utf8.ValidString(entry.Link) {
			entry.Omitted = "the target of the link is unknown"
		}
	default:
		entry.Omitted = "not a regular file"
	}
	if entry.Type == record.EntryDir && snapshotSkips[e.Name()] {
		entry.Omitted = "directories with this name are not recorded"
	} else if entry.Type == record.EntryDir && depth >= maxSnapshotDepth {
		entry.Omitted = "nested too deeply"
	}
	s.snap.Entries = append(s.snap.Entries, entry)
	if entry.Type == record.EntryDir && entry.Omitted == "" {
		return s.walk(name, depth+1)
	}
	return nil
}

// content stores a file, or returns the reason why not.
func (s *Snapshotter) content(name string, info fs.FileInfo) (*record.Blob, string) {
	switch {
	case info.Size() > maxSnapshotFile:
		return nil, fmt.Sprintf("larger than %d MiB", maxSnapshotFile>>20)
	case s.bytes+info.Size() > maxSnapshotBytes:
		return nil, fmt.Sprintf("the workspace contains more than %d MiB", maxSnapshotBytes>>20)
	}
	// Opening must not block, because the file may be a pipe by now.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, files.WithoutPath(err).Error()
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSnapshotFile+1))
	switch {
	case err != nil:
		return nil, files.WithoutPath(err).Error()
	case len(data) > maxSnapshotFile:
		return nil, fmt.Sprintf("larger than %d MiB", maxSnapshotFile>>20)
	}
	s.bytes += int64(len(data))
	blob, err := s.put(data)
	if err != nil {
		return nil, "not recorded: " + files.WithoutPath(err).Error()
	}
	return blob, ""
}

// put stores a content without secrets.
func (s *Snapshotter) put(data []byte) (*record.Blob, error) {
	if !s.Secrets.Empty() {
		data = []byte(s.Secrets.Text(string(data)))
	}
	blob, err := s.Blobs.Put(data)
	return &blob, err
}

// Lost returns an error if the file at a path of the workspace was not recorded or, with an
// empty path, any file was not. Where links exist, any path may lead to a file that was not.
func Lost(s *record.Snapshot, name string) error {
	if s.Incomplete != "" {
		return unkept("", s.Incomplete)
	}
	links := false
	for i := range s.Entries {
		links = links || s.Entries[i].Type == record.EntryLink
	}
	name = path.Clean(strings.TrimPrefix(name, "/"))
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Omitted == "" {
			continue
		}
		below := e.Type == record.EntryDir && strings.HasPrefix(name, e.Path+"/")
		if name == "." || links || below || e.Type != record.EntryDir && name == e.Path {
			return unkept(e.Path, e.Omitted)
		}
	}
	return nil
}

func unkept(name, why string) error {
	if name == "" {
		return fmt.Errorf("the trial's workspace was not recorded completely: %s; run the task again", why)
	}
	return fmt.Errorf("the trial's workspace was not recorded completely: %s: %s; run the task again", name, why)
}
