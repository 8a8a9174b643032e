package regrade

import (
	"fmt"
	"slices"

	"waza/runner/record"
	"waza/runner/replay"
)

// A Question is a grader's question to a person about one trial.
type Question struct {
	TaskID   string `json:"taskId"`
	TaskName string `json:"taskName"`
	Trial    int    `json:"trial"`
	Grader   string `json:"grader"`
	// Type is human or human_calibration.
	Type string `json:"type"`
	// Verdict is the trial's present verdict. It is empty for a question about a trial that waza
	// drew, until it is answered, because it depends on the judge.
	Verdict record.Verdict `json:"verdict"`
	// Pending reports whether the question waits for an answer. It does not if there is one, or
	// if an answer changes nothing because the trial failed anyway or is an error.
	Pending bool `json:"pending"`
	// Score and Comment are the answer; Score is nil if there is no answer yet.
	Score   *float64 `json:"score"`
	Comment string   `json:"comment,omitempty"`
	// Place is the place of a trial that waza drew in the order in which people are asked, from 1;
	// 0 for the questions of graders. See [Amender.Calibrate].
	Place int `json:"place,omitempty"`
	record.Review
}

// Questions lists the questions of a run's graders to people, answered or not, in the order of
// tasks, trials and graders. For an active run it lists the questions so far, although answers
// are accepted only after its end. The error is [record.ErrRunNotFound] or an error of reading
// the record.
func (r *Amender) Questions(runID string) ([]Question, error) {
	h, err := replay.Open(r.Catalog.Store, runID)
	if err != nil {
		return nil, err
	}
	st, err := h.State()
	if err != nil {
		return nil, err
	}
	var list []Question
	err = replay.VisitLean(h.Run, st, func(task int, t *replay.LeanTrial) error {
		list = append(list, questionsOf(h.Rec.Tasks[task], &t.Trial)...)
		return nil
	})
	return list, err
}

// Pending lists the questions that wait for an answer; see [Amender.Questions].
func (r *Amender) Pending(runID string) ([]Question, error) {
	list, err := r.Questions(runID)
	return slices.DeleteFunc(list, func(q Question) bool { return !q.Pending }), err
}

// NewestPending returns the newest run of the project of dir that is over and has pending
// questions, or "" if there is no such run. With an empty dir, it searches all projects. It
// ignores runs whose files cannot be read.
func (r *Amender) NewestPending(dir string) (runID string, err error) {
	err = r.Catalog.EarlierIn(dir, "", func(h record.Handle) bool {
		if p, err := h.Progress(); err != nil || p.Status == record.StatusRunning || !p.MayWait() {
			return true
		}
		if list, err := r.Pending(h.ID()); err == nil && len(list) > 0 {
			runID = h.ID()
		}
		return runID == ""
	})
	return runID, err
}

// Trial returns the present state of one trial of a run. It returns nil if the trial does not
// exist or has not ended.
func (r *Amender) Trial(runID, taskID string, trial int) (*record.Trial, error) {
	h, err := replay.Open(r.Catalog.Store, runID)
	if err != nil {
		return nil, err
	}
	st, err := h.State()
	if err != nil {
		return nil, err
	}
	task := slices.IndexFunc(h.Rec.Tasks, func(t record.TaskRef) bool { return t.ID == taskID })
	if task < 0 {
		return nil, nil
	}
	places, i := st.Tasks[task].Trials, trial-h.Rec.Tasks[task].First
	if i < 0 || i >= len(places) || places[i].Size == 0 {
		return nil, nil
	}
	files, err := replay.OpenTrials(h.Run)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	found := new(record.Trial)
	return found, files.Decode(places[i], found)
}

// File returns the recorded content of a file that a trial left in its workspace. If the file
// did not exist or was not kept, it returns an error that contains the path.
func (r *Amender) File(runID string, trial *record.Trial, path string) ([]byte, error) {
	var found *record.SnapshotEntry
	if w := trial.Workspace; w != nil {
		if i := slices.IndexFunc(w.Entries, func(e record.SnapshotEntry) bool { return e.Path == path }); i >= 0 {
			found = &w.Entries[i]
		}
	}
	switch {
	case found == nil:
		return nil, fmt.Errorf("%s: the trial left no such file", path)
	case found.Omitted != "":
		return nil, fmt.Errorf("%s: not kept: %s", path, found.Omitted)
	case found.Blob == nil:
		return nil, fmt.Errorf("%s: not a file", path)
	}
	h, err := replay.Open(r.Catalog.Store, runID)
	if err != nil {
		return nil, err
	}
	blobs, err := h.Run.Blobs()
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	b, err := blobs.Get(*found.Blob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func questionsOf(task record.TaskRef, res *record.Trial) []Question {
	var list []Question
	for i := range res.Graders {
		g := &res.Graders[i]
		if !g.AsksPerson() || g.Error != "" {
			continue
		}
		q := Question{
			TaskID: task.ID, TaskName: task.Name, Trial: res.TrialNum, Grader: g.Name, Type: g.Type,
			Verdict: res.Verdict, Review: g.Review(), Pending: g.NeedsReview && (res.Verdict == record.NeedsReview || g.Calibrates()),
		}
		if !g.NeedsReview {
			q.Score, q.Comment = &g.Score, g.Feedback
		}
		if d := q.Drawn; d != nil {
			q.Place, q.Drawn = d.Place, nil // people must not see the judge's verdict
			if g.NeedsReview {
				q.Verdict = ""
			}
		}
		list = append(list, q)
	}
	return list
}
