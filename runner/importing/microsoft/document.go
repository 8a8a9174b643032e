package microsoft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"waza/runner/importing/source"
	"waza/runner/record"
)

// A document is a results.json without its runs.
type document struct {
	head
	tasks    []*task
	triggers []*trigger
	baseline *document
}

// head holds the small members of a document.
type head struct {
	SchemaVersion string    `json:"schemaVersion"`
	EvalID        string    `json:"eval_id"`
	Skill         string    `json:"skill"`
	EvalName      string    `json:"eval_name"`
	Timestamp     time.Time `json:"timestamp"`
	Config        struct {
		RunsPerTest float64 `json:"runs_per_test"`
		ModelID     string  `json:"model_id"`
		EngineType  string  `json:"engine_type"`
		TimeoutSec  float64 `json:"timeout_sec"`
		JudgeModel  string  `json:"judge_model"`
	} `json:"config"`
	Summary struct {
		DurationMS float64 `json:"duration_ms"`
	} `json:"summary"`
	Metrics map[string]struct {
		Threshold float64 `json:"threshold"`
		Weight    float64 `json:"weight"`
	} `json:"metrics"`
	Metadata metadata `json:"metadata"`
}

// metadata can contain anything; the named members are waza's own.
type metadata map[string]json.RawMessage

func (m metadata) text(name string) (text string, ok bool) {
	return text, json.Unmarshal(m[name], &text) == nil
}

// timeouts returns the numbers of the trials that timed out, by the id of their task.
func (m metadata) timeouts() map[string][]int {
	var t map[string][]int
	if json.Unmarshal(m["timeouts"], &t) != nil {
		return nil
	}
	return t
}

// check returns an error for values that no tool writes.
func (h *head) check() error {
	if major, _, _ := strings.Cut(h.SchemaVersion, "."); h.SchemaVersion != "" && major != "1" {
		return fmt.Errorf("schemaVersion %q: expected 1 or 1.x", h.SchemaVersion)
	}
	for name, text := range map[string]string{
		"eval_id": h.EvalID, "skill": h.Skill, "eval_name": h.EvalName, "config.model_id": h.Config.ModelID,
		"config.engine_type": h.Config.EngineType, "config.judge_model": h.Config.JudgeModel,
	} {
		if len(text) > source.MaxName {
			return fmt.Errorf("%s has %d bytes, the limit is %d", name, len(text), source.MaxName)
		}
	}
	for name, n := range map[string]float64{
		"config.runs_per_test": h.Config.RunsPerTest, "config.timeout_sec": h.Config.TimeoutSec,
		"summary.duration_ms": h.Summary.DurationMS,
	} {
		if n < 0 || n > math.MaxInt32*1000 {
			return fmt.Errorf("%s: %g is out of range", name, n)
		}
	}
	for name, m := range h.Metrics {
		if m.Weight < 0 || math.IsInf(m.Weight, 0) || m.Threshold < 0 || m.Threshold > 1 {
			return fmt.Errorf("metrics.%s: weight must be at least 0 and threshold from 0 to 1, got %g and %g", name, m.Weight, m.Threshold)
		}
	}
	return nil
}

// A task is a task without its runs.
type task struct {
	TestID      string `json:"test_id"`
	DisplayName string `json:"display_name"`
	Group       string `json:"group"`
	Status      string `json:"status"`
	Golden      bool   `json:"golden"`
	Cluster     string `json:"cluster"`

	numbers         []int // of its runs
	passed, counted int
	index           int // in the run; -1 if it is omitted
}

// check returns an error for a missing or invalid member.
func (t *task) check() error {
	switch {
	case t.TestID == "":
		return fmt.Errorf("test_id is missing")
	case len(t.TestID) > source.MaxName || len(t.DisplayName) > source.MaxName || len(t.Group) > source.MaxName:
		return fmt.Errorf("test_id, display_name or group has more than %d bytes", source.MaxName)
	case t.Status != "" && !slices.Contains(statuses, t.Status):
		return fmt.Errorf("status %q: expected %s", t.Status, strings.Join(statuses, ", "))
	}
	return nil
}

// inOrder reports whether the runs have different, ascending numbers. Otherwise their positions
// are their numbers.
func (t *task) inOrder() bool {
	for i, n := range t.numbers {
		if n < 1 || n != t.numbers[0]+i {
			return false
		}
	}
	return len(t.numbers) > 0
}

// number returns the number of the run at a position.
func (t *task) number(place int) int {
	if t.inOrder() {
		return t.numbers[place]
	}
	return place + 1
}

// ref returns the task of a run. The file does not contain the required share of passed trials.
// If the task passed although some trials did not, ref uses the share that passed.
func (t *task) ref() record.TaskRef {
	ref := record.TaskRef{ID: t.TestID, Name: t.DisplayName, Trials: max(1, len(t.numbers)), First: 1, Golden: t.Golden, Cluster: t.Cluster}
	ref.Name = cmp.Or(ref.Name, ref.ID)
	if t.Group != "" {
		ref.Groups = []string{t.Group}
	}
	if t.inOrder() {
		ref.First = t.numbers[0]
	}
	if t.Status == "passed" && t.passed < t.counted {
		share := float64(t.passed) / float64(t.counted)
		ref.PassThreshold = &share
	}
	return ref
}

// A trigger is a prompt of the trigger tests.
type trigger struct {
	record.TriggerRef
	runs, index int
}

// noneRecorded is the reason of the trial of a task without runs.
const noneRecorded = "the file has no run of the task"

// baselineSuffix is the end of the ids of baselines in runs.
const baselineSuffix = "#baseline"

// refs adds the tasks to the run: baselines first, as in waza's own runs, then tasks and trigger
// tests.
func (d *document) refs(rec *record.Run, f *file) {
	taken := map[string]bool{}
	for _, t := range d.tasks {
		taken[t.TestID] = true
	}
	if d.baseline != nil {
		rec.Baseline = &record.BaselineRef{}
		for _, t := range d.baseline.tasks {
			t.index = -1
			of := strings.TrimSuffix(t.TestID, baselineSuffix)
			if taken[t.TestID] {
				of = t.TestID
			}
			if id := of + baselineSuffix; taken[of] && !taken[id] {
				ref := t.ref()
				ref.ID, ref.Of, ref.Role, t.index = id, of, record.RoleBaseline, len(rec.Tasks)
				rec.Tasks, taken[id] = append(rec.Tasks, ref), true
			} else {
				f.notes = append(f.notes, fmt.Sprintf("baseline_outcome: task %q is omitted because no task has its id", t.TestID))
			}
		}
	}
	for _, t := range d.tasks {
		t.index = len(rec.Tasks)
		rec.Tasks = append(rec.Tasks, t.ref())
	}
	if len(d.triggers) == 0 {
		return
	}
	rec.Triggers = &record.TriggersRef{Skill: d.Skill, Prompts: len(d.triggers)}
	count := map[string]int{}
	for _, t := range d.triggers {
		kind := "should_not_trigger"
		if t.ShouldTrigger {
			kind = "should_trigger"
		}
		id := ""
		for id == "" || taken[id] {
			count[kind]++
			id = fmt.Sprintf("%s#%d", kind, count[kind])
		}
		taken[id], t.index, t.Skill = true, len(rec.Tasks), d.Skill
		ref := t.TriggerRef
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: id, Name: id, Role: record.RoleTrigger, Trigger: &ref, Trials: t.runs, First: 1})
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
