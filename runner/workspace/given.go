package workspace

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"waza/eval"
	"waza/runner/internal/secrets"
	"waza/runner/record"
)

// givenFile is a file that waza put into a workspace.
type givenFile struct {
	path string // slash-separated
	// content stores its initial content. It returns nil when that is too large, or cannot be
	// read any more.
	content func(s *Snapshotter) *record.Blob
}

// Prepared records the initial content of the workspace for the agent.
func (w *Workspace) Prepared(ctx context.Context, blobs Keeper, secrets *secrets.Redactor) {
	s := w.Snapshot(ctx, blobs, secrets)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = s
}

// AddWritten adds the files that commands of the suite wrote between two snapshots, while the agent waited. Files that existed
// before remain those of the agent, or files that it got. A nil snapshot is that of a workspace that does not exist.
func (w *Workspace) AddWritten(before, after *record.Snapshot) {
	if after == nil {
		return
	}
	existed := map[string]bool{}
	why := after.Incomplete
	if before != nil {
		why = cmp.Or(before.Incomplete, why)
		for _, e := range before.Entries {
			existed[e.Path] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread = cmp.Or(w.unread, why)
	for _, e := range after.Entries {
		if e.Type != record.EntryDir && !existed[e.Path] {
			w.written = append(w.written, givenFile{e.Path, func(*Snapshotter) *record.Blob { return e.Blob }})
		}
	}
}

// Given returns a function that reports whether the workspace contained a file when the agent
// started, or got it from [Workspace.Add] or [Workspace.AddWritten]. The error means that nobody knows.
func (w *Workspace) Given() (func(path string) bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, unread := map[string]bool{}, []string(nil)
	switch {
	case w.From != nil:
		for _, e := range slices.Concat(w.From.Entries, w.From.Removed) {
			known[e.Path] = e.Given != ""
		}
	case w.started != nil && w.started.Incomplete != "":
		return nil, fmt.Errorf("the files that the agent started with are unknown: %s", w.started.Incomplete)
	case w.started != nil:
		for _, e := range w.started.Entries {
			known[e.Path] = e.Type != record.EntryDir
			if e.Type == record.EntryDir && e.Omitted != "" {
				unread = append(unread, e.Path+"/")
			}
		}
	default:
		for _, f := range w.Task.Inputs.Files {
			known[path.Clean(f.Path)] = true
		}
	}
	for _, f := range w.added {
		known[path.Clean(f.Path)] = true
	}
	if w.unread != "" {
		return nil, fmt.Errorf("the files that commands of checkpoints wrote are unknown: %s", w.unread)
	}
	for _, f := range w.written {
		known[f.path] = true
	}
	return func(path string) bool {
		return known[path] || slices.ContainsFunc(unread, func(dir string) bool { return strings.HasPrefix(path, dir) })
	}, nil
}

// givenLocked lists the initial files of the agent, those at the time when the executor called
// Prepared, else the task's, and the files that followed. They are read only when needed.
func (w *Workspace) givenLocked() []givenFile {
	var files []givenFile
	put := func(list []eval.InputFile) {
		for _, f := range list {
			files = append(files, givenFile{path.Clean(f.Path), func(s *Snapshotter) *record.Blob { return s.given(w.Suite, f, w.Fill) }})
		}
	}
	if w.started == nil {
		put(w.Task.Inputs.Files)
	} else {
		for _, e := range w.started.Entries {
			if e.Type == record.EntryFile {
				files = append(files, givenFile{e.Path, func(*Snapshotter) *record.Blob { return e.Blob }})
			}
		}
	}
	put(w.added)
	return append(files, w.written...)
}

// given stores the content of a file of the task.
func (s *Snapshotter) given(suite *eval.Suite, f eval.InputFile, fill func(string) string) *record.Blob {
	var data []byte
	if f.Content != nil {
		data = []byte(fill(*f.Content))
	} else {
		var err error
		if data, err = suite.ReadFile(f.Source, maxSnapshotFile); err != nil {
			return nil
		}
	}
	blob, err := s.put(data)
	if err != nil {
		return nil
	}
	return blob
}

// compare records the fate of the files that were put into the workspace. An unchanged file
// takes only one word in the record, because its content is already there.
func (s *Snapshotter) compare(given []givenFile) {
	at := map[string]int{}
	for i := range s.snap.Entries {
		at[s.snap.Entries[i].Path] = i
	}
	seen := map[string]bool{}
	for i := len(given) - 1; i >= 0; i-- { // of two files with one path, the last one remained
		f := given[i]
		if seen[f.path] || s.ctx.Err() != nil {
			continue
		}
		seen[f.path] = true
		if j, ok := at[f.path]; ok {
			s.compareEntry(&s.snap.Entries[j], f)
		} else if Lost(s.snap, f.path) == nil {
			gone := record.SnapshotEntry{Path: f.path, Type: record.EntryFile, Given: record.GivenChanged}
			gone.Before = f.content(s)
			s.snap.Removed = append(s.snap.Removed, gone)
		}
	}
	sortRemoved(s.snap.Removed)
}

func (s *Snapshotter) compareEntry(e *record.SnapshotEntry, f givenFile) {
	e.Given = record.GivenUnknown
	if e.Type == record.EntryFile && e.Blob == nil {
		return
	}
	e.Before = f.content(s)
	switch {
	case e.Before == nil:
	case e.Type == record.EntryFile && e.Blob.Hash == e.Before.Hash:
		e.Given, e.Before = record.GivenSame, nil
	default:
		e.Given = record.GivenChanged
	}
}
