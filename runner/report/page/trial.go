package page

import (
	"waza/runner/record"
)

// A TrialView is a trial for people: its data, with very long texts shortened, and the files in
// its workspace.
type TrialView struct {
	// Trial has no workspace; Files shows it.
	*record.Trial
	Files []TrialFile `json:"files,omitempty"`
	// Incomplete is the reason why some files are unknown; empty if all are known.
	Incomplete string `json:"incomplete,omitempty"`
	// Cut is the number of omitted bytes of texts and files.
	Cut int64 `json:"cut,omitempty"`
}

// ViewTrial returns a view of a trial, with contents from the blobs of its run. The view owns t
// from then on. Its size is limited, because readers of one trial expect a quick answer.
func ViewTrial(t *record.Trial, blobs record.Blobs) *TrialView {
	c := &clipper{each: maxHTMLText, left: maxHTMLTrial}
	// Shorten all of many long texts, rather than omit the last of them.
	if n := countTexts(t); weightOf(t) > maxHTMLTrial && n > 0 {
		c.each = min(maxHTMLText, max(leastHTMLText, maxHTMLTrial/n))
	}
	t.Error, t.Prompt, t.Output = c.text(t.Error), c.text(t.Prompt), c.text(t.Output)
	c.graders(t.Graders)
	t.Transcript = c.transcript(t.Transcript)
	t.Spent = t.Ledger() // older records do not contain it
	view := &TrialView{Trial: t}
	if t.Workspace != nil {
		view.Incomplete = t.Workspace.Incomplete
		view.Files = c.files(t.Workspace, blobs)
		t.Workspace = nil
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Error, a.Output = c.text(a.Error), c.text(a.Output)
		c.graders(a.Graders)
		a.Transcript = c.transcript(a.Transcript)
	}
	view.Cut = c.cut
	return view
}
