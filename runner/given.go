package runner

import (
	"io"
	"os"
	"path"

	"waza/eval"
)

// givenFile is a file that was put into a workspace before the attempt began.
type givenFile struct {
	path string // slash-separated
	// read returns the content. False means that it is too large to be kept, or
	// cannot be read any more.
	read func() ([]byte, bool)
}

// given lists the files of the task. They are read only when they are asked for.
func (w *workspace) given() []givenFile {
	files := make([]givenFile, 0, len(w.task.Inputs.Files))
	for _, f := range w.task.Inputs.Files {
		files = append(files, givenFile{path.Clean(f.Path), func() ([]byte, bool) { return w.givenContent(f) }})
	}
	return files
}

func (w *workspace) givenContent(f eval.InputFile) ([]byte, bool) {
	if f.Content != nil {
		return []byte(w.fill(*f.Content)), true
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return nil, false
	}
	defer src.Close()
	data, err := io.ReadAll(io.LimitReader(src, maxSnapshotFile+1))
	return data, err == nil && len(data) <= maxSnapshotFile
}

// compare notes what became of the files that were put into the workspace. An
// unchanged one takes no more room in the record than that word: its content is
// there already.
func (s *snapshooter) compare(given []givenFile) {
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
		} else if s.snap.lost(f.path) == nil {
			gone := SnapshotEntry{Path: f.path, Type: entryFile, Given: GivenChanged}
			s.keepBefore(&gone, f)
			s.snap.Removed = append(s.snap.Removed, gone)
		}
	}
	sortRemoved(s.snap.Removed)
}

func (s *snapshooter) compareEntry(e *SnapshotEntry, f givenFile) {
	e.Given = GivenUnknown
	if e.Type == entryFile && e.Blob == nil {
		return
	}
	s.keepBefore(e, f)
	switch {
	case e.Before == nil:
	case e.Type == entryFile && e.Blob.Hash == e.Before.Hash:
		e.Given, e.Before = GivenSame, nil
	default:
		e.Given = GivenChanged
	}
}

// keepBefore keeps what the file held when it was put into the workspace.
func (s *snapshooter) keepBefore(e *SnapshotEntry, f givenFile) {
	data, ok := f.read()
	if !ok {
		return
	}
	if blob, err := s.put(data); err == nil {
		e.Before = blob
	}
}
