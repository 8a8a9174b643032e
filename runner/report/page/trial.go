package page

import (
	"waza/runner/record"
)

// TrialView is one trial as people look into it: what is known of it, with very
// long texts shortened, and the files that it left.
type TrialView struct {
	// Trial is without its workspace, which Files shows.
	*record.Trial
	Files []TrialFile `json:"files,omitempty"`
	// Incomplete says why not all files are known; empty when they are.
	Incomplete string `json:"incomplete,omitempty"`
	// Cut is how many bytes of texts and files were left out.
	Cut int64 `json:"cut,omitempty"`
}

// ViewTrial makes a view of a trial, which belongs to it from then on, with the
// contents of its run. It is bounded, whatever the trial did: a reader of one
// trial wants an answer at once.
func ViewTrial(t *record.Trial, blobs record.Blobs) *TrialView {
	c := &clipper{each: maxHTMLText, left: maxHTMLTrial}
	// Many long texts are all shortened, rather than the last of them dropped.
	if n := countTexts(t); weightOf(t) > maxHTMLTrial && n > 0 {
		c.each = min(maxHTMLText, max(leastHTMLText, maxHTMLTrial/n))
	}
	t.Error, t.Prompt, t.Output = c.text(t.Error), c.text(t.Prompt), c.text(t.Output)
	c.graders(t.Graders)
	t.Transcript = c.transcript(t.Transcript)
	t.Spent = t.Ledger() // which older records do not hold
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
