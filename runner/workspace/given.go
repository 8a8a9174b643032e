package workspace

import (
	"context"
	"path"

	"waza/eval"
	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
)

// givenFile is a file that was put into a workspace before the attempt began.
type givenFile struct {
	path string // slash-separated
	// content keeps what it held. Nil means that this is too large to be kept, or
	// cannot be read any more.
	content func(s *Snapshooter) *record.Blob
}

// Prepared notes what is in the workspace: the agent begins with that.
func (w *Workspace) Prepared(ctx context.Context, blobs *journal.Blobs, secrets *provider.Redactor) {
	s := w.Snapshot(ctx, blobs, secrets)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = s
}

// givenLocked lists the files that the agent began with: those that were there when
// the executor said so, else the task's. They are read only when they are asked for.
func (w *Workspace) givenLocked() []givenFile {
	var files []givenFile
	if w.begun != nil {
		for _, e := range w.begun.Entries {
			if e.Type == record.EntryFile {
				files = append(files, givenFile{e.Path, func(*Snapshooter) *record.Blob { return e.Blob }})
			}
		}
		return files
	}
	for _, f := range w.Task.Inputs.Files {
		files = append(files, givenFile{path.Clean(f.Path), func(s *Snapshooter) *record.Blob { return s.given(w.Suite, f, w.Fill) }})
	}
	return files
}

// given keeps what a file of the task held.
func (s *Snapshooter) given(suite *eval.Suite, f eval.InputFile, fill func(string) string) *record.Blob {
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

// compare notes what became of the files that were put into the workspace. An
// unchanged one takes no more room in the record than that word: its content is
// there already.
func (s *Snapshooter) compare(given []givenFile) {
	at := map[string]int{}
	for i := range s.snap.Entries {
		at[s.snap.Entries[i].Path] = i
	}
	seen := map[string]bool{}
	for i := len(given) - 1; i >= 0; i-- { // of two with one path, the last was there in the end
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

func (s *Snapshooter) compareEntry(e *record.SnapshotEntry, f givenFile) {
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
