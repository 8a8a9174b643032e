package page

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"waza/eval/text"
	"waza/runner/record"
)

const (
	// maxHTMLFiles is the most files of a workspace in the list, and maxHTMLShown the most that
	// are shown.
	maxHTMLFiles = 1000
	maxHTMLShown = 100
	// maxHTMLFile is the size of the largest file that is shown.
	maxHTMLFile = 256 << 10
)

// A TrialFile is a file of a workspace in a report.
type TrialFile struct {
	Path string `json:"path"`
	// State is added, changed, removed, same or unknown.
	State string `json:"state"`
	Type  string `json:"type,omitempty"` // empty for a regular file
	Link  string `json:"link,omitempty"`
	Size  *int64 `json:"size,omitempty"` // current size
	// Text is the content of an added file, and Diff the unified difference of a changed or
	// removed file.
	Text *string `json:"text,omitempty"`
	Diff *string `json:"diff,omitempty"`
	// Note is the reason why both are missing.
	Note string `json:"note,omitempty"`
}

// fileOrder is the order of files in lists: changed files come first.
var fileOrder = map[string]int{"changed": 0, "added": 1, "removed": 2, "unknown": 3, "same": 4}

// files lists the files of a workspace, with the agent's changes.
func (c *clipper) files(s *record.Snapshot, blobs record.Blobs) []TrialFile {
	entries := slices.Concat(s.Entries, s.Removed)
	gone := len(s.Entries)
	order := make([]int, 0, len(entries))
	for i := range entries {
		if entries[i].Type != "dir" || entries[i].Omitted != "" {
			order = append(order, i)
		}
	}
	state := func(i int) string { return stateOf(&entries[i], i >= gone) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(fileOrder[state(a)], fileOrder[state(b)]) })
	var files []TrialFile
	for n, i := range order {
		if n == maxHTMLFiles {
			break
		}
		e := &entries[i]
		f := TrialFile{Path: e.Path, State: state(i), Link: text.Head(e.Link, leastHTMLText), Note: e.Omitted}
		if e.Type != "file" {
			f.Type = e.Type
		}
		if e.Blob != nil {
			f.Size = &e.Blob.Size
		}
		if f.Note == "" && n < maxHTMLShown {
			c.show(&f, e, blobs)
		}
		files = append(files, f)
	}
	return files
}

func stateOf(e *record.SnapshotEntry, removed bool) string {
	switch {
	case removed:
		return "removed"
	case e.Given == record.GivenSame, e.Given == record.GivenChanged, e.Given == record.GivenUnknown:
		return string(e.Given)
	}
	return "added"
}

// show adds the text or the difference of a file.
func (c *clipper) show(f *TrialFile, e *record.SnapshotEntry, blobs record.Blobs) {
	if f.State == "same" || f.State == "unknown" || f.State == "added" && e.Blob == nil {
		return
	}
	after, note := contentOf(e.Blob, blobs)
	before, noteBefore := contentOf(e.Before, blobs)
	switch f.Note = cmp.Or(note, noteBefore); {
	case f.Note != "":
	case f.State == "added":
		f.Text = c.content(string(after), f)
	case e.Before == nil:
		f.Note = "its earlier content was not kept"
	default:
		f.Diff = c.content(difference(before, after), f)
	}
}

// content returns a text if there is room for it, and nil with a note otherwise.
func (c *clipper) content(text string, f *TrialFile) *string {
	if len(text) > c.left {
		c.cut += int64(len(text))
		f.Note = "omitted because this report would be too large"
		return nil
	}
	c.left -= len(text)
	return &text
}

// contentOf reads a text. If it returns no text, note is the reason.
func contentOf(b *record.Blob, blobs record.Blobs) (text []byte, note string) {
	switch {
	case b == nil:
		return nil, ""
	case b.Size > maxHTMLFile:
		return nil, "too large to show here"
	}
	text, err := blobs.Get(*b)
	switch {
	case err != nil:
		return nil, "its content no longer exists"
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, "not a text"
	}
	return text, ""
}

// difference returns a unified diff without the lines that name the files.
func difference(before, after []byte) string {
	text := diff.Diff("a", before, "b", after)
	for range 3 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return string(text)
}
