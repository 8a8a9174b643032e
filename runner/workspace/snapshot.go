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

	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
)

// Bounds on what is kept of a workspace. What is beyond them is named, so that
// nothing is concluded from its absence.
const (
	maxSnapshotEntries = 20_000
	maxSnapshotBytes   = 64 << 20 // of the contents of one trial
	maxSnapshotFile    = 16 << 20
	maxSnapshotDepth   = 64
)

// snapshotSkips are directories whose content is not kept: it is large, was
// fetched rather than made, and can be had again.
var snapshotSkips = map[string]bool{"node_modules": true, ".venv": true}

// Snapshooter takes a snapshot.
type Snapshooter struct {
	ctx     context.Context
	root    *os.Root
	Blobs   *journal.Blobs
	Secrets *provider.Redactor
	snap    *record.Snapshot
	bytes   int64 // of contents, so far
}

// takeSnapshot keeps what is in a workspace, and what became of the files that were put into
// it. Contents are kept without secrets. It always returns a snapshot: what went
// wrong makes it incomplete.
func takeSnapshot(ctx context.Context, root *os.Root, given []givenFile, blobs *journal.Blobs, secrets *provider.Redactor) *record.Snapshot {
	s := &Snapshooter{ctx: ctx, root: root, Blobs: blobs, Secrets: secrets, snap: &record.Snapshot{Entries: []record.SnapshotEntry{}}}
	if err := s.walk(".", 0); err != nil {
		s.snap.Incomplete = err.Error()
	}
	s.compare(given)
	return s.snap
}

// walk takes what is in a directory. An error ends the snapshot.
func (s *Snapshooter) walk(dir string, depth int) error {
	entries, err := s.list(dir)
	if err != nil {
		return s.omitDir(dir, err)
	}
	for _, e := range entries {
		switch {
		case s.ctx.Err() != nil:
			return errors.New("the trial ended before all of the workspace was kept")
		case len(s.snap.Entries) == maxSnapshotEntries:
			return fmt.Errorf("the workspace holds more than %d files and directories", maxSnapshotEntries)
		case !utf8.ValidString(e.Name()) || strings.ContainsRune(e.Name(), '\\'):
			return fmt.Errorf("the workspace holds a name that cannot be recorded: %q", e.Name())
		}
		if err := s.take(path.Join(dir, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

// list reads a directory, and not one more entry than there is room for.
func (s *Snapshooter) list(dir string) ([]fs.DirEntry, error) {
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

// omitDir notes that what is in a directory cannot be told.
func (s *Snapshooter) omitDir(dir string, err error) error {
	if dir == "." || len(s.snap.Entries) == 0 {
		return fmt.Errorf("the workspace could not be read: %w", withoutPath(err))
	}
	s.snap.Entries[len(s.snap.Entries)-1].Omitted = withoutPath(err).Error()
	return nil
}

// take adds one entry, and what is below it.
func (s *Snapshooter) take(name string, e fs.DirEntry, depth int) error {
	info, err := s.root.Lstat(name)
	if err != nil {
		return fmt.Errorf("the workspace could not be read: %s: %w", name, withoutPath(err))
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
			entry.Omitted = "where the link leads cannot be told"
		}
	default:
		entry.Omitted = "not a regular file"
	}
	if entry.Type == record.EntryDir && snapshotSkips[e.Name()] {
		entry.Omitted = "directories of this name are not kept"
	} else if entry.Type == record.EntryDir && depth >= maxSnapshotDepth {
		entry.Omitted = "too deep"
	}
	s.snap.Entries = append(s.snap.Entries, entry)
	if entry.Type == record.EntryDir && entry.Omitted == "" {
		return s.walk(name, depth+1)
	}
	return nil
}

// content keeps a file, or says why not.
func (s *Snapshooter) content(name string, info fs.FileInfo) (*record.Blob, string) {
	switch {
	case info.Size() > maxSnapshotFile:
		return nil, fmt.Sprintf("larger than %d MiB", maxSnapshotFile>>20)
	case s.bytes+info.Size() > maxSnapshotBytes:
		return nil, fmt.Sprintf("the workspace holds more than %d MiB", maxSnapshotBytes>>20)
	}
	// Opening waits for nobody, should it be a pipe by now.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, withoutPath(err).Error()
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSnapshotFile+1))
	switch {
	case err != nil:
		return nil, withoutPath(err).Error()
	case len(data) > maxSnapshotFile:
		return nil, fmt.Sprintf("larger than %d MiB", maxSnapshotFile>>20)
	}
	s.bytes += int64(len(data))
	blob, err := s.put(data)
	if err != nil {
		return nil, "not recorded: " + withoutPath(err).Error()
	}
	return blob, ""
}

// put keeps a content without secrets.
func (s *Snapshooter) put(data []byte) (*record.Blob, error) {
	if !s.Secrets.Empty() {
		data = []byte(s.Secrets.Text(string(data)))
	}
	blob, err := s.Blobs.Put(data)
	return &blob, err
}

// withoutPath takes the path out of an error of the file system: it is another
// for each trial.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Lost says that what stood at a path of the workspace, or anything at all when
// the path is empty, was not kept. Where links are, any path may lead to what was
// not.
func Lost(s *record.Snapshot, name string) error {
	if s.Incomplete != "" {
		return unkept(s, "", s.Incomplete)
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
			return unkept(s, e.Path, e.Omitted)
		}
	}
	return nil
}

func unkept(s *record.Snapshot, name, why string) error {
	if name == "" {
		return fmt.Errorf("the trial's workspace was not recorded in full: %s; only a new run can tell", why)
	}
	return fmt.Errorf("the trial's workspace was not recorded in full: %s: %s; only a new run can tell", name, why)
}
