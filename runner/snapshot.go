package runner

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

// Snapshot is a workspace as the executor left it.
type Snapshot struct {
	// Entries are in lexical order, directories before what is in them.
	Entries []SnapshotEntry `json:"entries"`
	// Incomplete says why there may be more than Entries tell.
	Incomplete string `json:"incomplete,omitempty"`
	// Destroyed says what the agent did to its workspace, which it deleted or
	// replaced; empty when it was left in place. Entries are what was in it.
	Destroyed string `json:"destroyed,omitempty"`
	// Removed are files that were there when the attempt began and gone when it
	// ended; Before is their content. Those of which Entries cannot tell are not
	// among them.
	Removed []SnapshotEntry `json:"removed,omitempty"`
}

// SnapshotEntry is one thing in a workspace.
type SnapshotEntry struct {
	// Path is relative to the workspace, with slashes.
	Path string `json:"path"`
	// Type is file, dir, link or other.
	Type string `json:"type"`
	// Mode are the permission bits.
	Mode uint32 `json:"mode,omitempty"`
	// Link is where a link leads.
	Link string `json:"link,omitempty"`
	// Blob is the content of a file; nil when it was not kept.
	*journal.Blob
	// Omitted says why the content of a file, or what is below a directory, was not kept.
	Omitted string `json:"omitted,omitempty"`
	// Given tells of a file that the workspace held when the attempt began, of the
	// task or of the executor; empty for what came later.
	Given Given `json:"given,omitempty"`
	// Before is what such a file held at the beginning, if that is not what
	// it holds now; nil when it was not kept.
	Before *journal.Blob `json:"before,omitempty"`
}

// Given says what became of a file that an attempt began with.
type Given string

// What can become of such a file that is still there.
const (
	GivenSame    Given = "same"
	GivenChanged Given = "changed"
	// GivenUnknown is a file whose content, now or then, was not kept.
	GivenUnknown Given = "unknown"
)

// The types of entries.
const (
	entryFile  = "file"
	entryDir   = "dir"
	entryLink  = "link"
	entryOther = "other"
)

// snapshooter takes a snapshot.
type snapshooter struct {
	ctx     context.Context
	root    *os.Root
	blobs   *journal.Blobs
	secrets *provider.Redactor
	snap    *Snapshot
	bytes   int64 // of contents, so far
}

// takeSnapshot keeps what is in a workspace, and what became of the files that were put into
// it. Contents are kept without secrets. It always returns a snapshot: what went
// wrong makes it incomplete.
func takeSnapshot(ctx context.Context, root *os.Root, given []givenFile, blobs *journal.Blobs, secrets *provider.Redactor) *Snapshot {
	s := &snapshooter{ctx: ctx, root: root, blobs: blobs, secrets: secrets, snap: &Snapshot{Entries: []SnapshotEntry{}}}
	if err := s.walk(".", 0); err != nil {
		s.snap.Incomplete = err.Error()
	}
	s.compare(given)
	return s.snap
}

// walk takes what is in a directory. An error ends the snapshot.
func (s *snapshooter) walk(dir string, depth int) error {
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
func (s *snapshooter) list(dir string) ([]fs.DirEntry, error) {
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
func (s *snapshooter) omitDir(dir string, err error) error {
	if dir == "." || len(s.snap.Entries) == 0 {
		return fmt.Errorf("the workspace could not be read: %w", withoutPath(err))
	}
	s.snap.Entries[len(s.snap.Entries)-1].Omitted = withoutPath(err).Error()
	return nil
}

// take adds one entry, and what is below it.
func (s *snapshooter) take(name string, e fs.DirEntry, depth int) error {
	info, err := s.root.Lstat(name)
	if err != nil {
		return fmt.Errorf("the workspace could not be read: %s: %w", name, withoutPath(err))
	}
	entry := SnapshotEntry{Path: name, Type: entryOther, Mode: uint32(info.Mode().Perm())}
	switch mode := info.Mode(); {
	case mode.IsDir():
		entry.Type = entryDir
	case mode.IsRegular():
		entry.Type = entryFile
		entry.Blob, entry.Omitted = s.content(name, info)
	case mode&fs.ModeSymlink != 0:
		entry.Type = entryLink
		if entry.Link, err = s.root.Readlink(name); err != nil || !utf8.ValidString(entry.Link) {
			entry.Omitted = "where the link leads cannot be told"
		}
	default:
		entry.Omitted = "not a regular file"
	}
	if entry.Type == entryDir && snapshotSkips[e.Name()] {
		entry.Omitted = "directories of this name are not kept"
	} else if entry.Type == entryDir && depth >= maxSnapshotDepth {
		entry.Omitted = "too deep"
	}
	s.snap.Entries = append(s.snap.Entries, entry)
	if entry.Type == entryDir && entry.Omitted == "" {
		return s.walk(name, depth+1)
	}
	return nil
}

// content keeps a file, or says why not.
func (s *snapshooter) content(name string, info fs.FileInfo) (*journal.Blob, string) {
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
func (s *snapshooter) put(data []byte) (*journal.Blob, error) {
	if !s.secrets.Empty() {
		data = []byte(s.secrets.Text(string(data)))
	}
	blob, err := s.blobs.Put(data)
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

// lost says that what stood at a path of the workspace, or anything at all when
// the path is empty, was not kept. Where links are, any path may lead to what was
// not.
func (s *Snapshot) Lost(name string) error {
	if s.Incomplete != "" {
		return s.unkept("", s.Incomplete)
	}
	links := false
	for i := range s.Entries {
		links = links || s.Entries[i].Type == entryLink
	}
	name = path.Clean(strings.TrimPrefix(name, "/"))
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Omitted == "" {
			continue
		}
		below := e.Type == entryDir && strings.HasPrefix(name, e.Path+"/")
		if name == "." || links || below || e.Type != entryDir && name == e.Path {
			return s.unkept(e.Path, e.Omitted)
		}
	}
	return nil
}

func (s *Snapshot) unkept(name, why string) error {
	if name == "" {
		return fmt.Errorf("the trial's workspace was not recorded in full: %s; only a new run can tell", why)
	}
	return fmt.Errorf("the trial's workspace was not recorded in full: %s: %s; only a new run can tell", name, why)
}
