package page

import (
	"waza/runner/record"
)

// TrialView is one trial as people look into it: what is known of it, with very
// long texts shortened, and the files that it left.
type TrialView struct {
	// Trial is without its workspace, which Files shows.
	Trial *record.Trial
	Files []TrialFile
	// Incomplete says why not all files are known; empty when they are.
	Incomplete string
	// Cut is how many bytes of texts and files were left out.
	Cut int64
}

// ViewTrial makes a view of a trial, which belongs to it from then on, with the
// contents of its run. It is bounded, whatever the trial did: a reader of one
// trial wants an answer at once.
func ViewTrial(t *record.Trial, blobs record.Blobs) *TrialView {
	shown := shownTrial(0, t, blobs)
	t.Workspace = nil
	return &TrialView{Trial: t, Files: shown.Files, Incomplete: shown.Incomplete, Cut: shown.Cut}
}
