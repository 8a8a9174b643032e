package dialect

import (
	"bytes"
	"encoding/json"
)

// A Document is the content of a suite for [Dialect.Write], without places.
type Document struct {
	// File is the absolute path of the file to write.
	File                              string
	Name, Description, Version, Skill string
	// Templates means that texts can have template variables.
	Templates bool
	Cases     []Case
	Triggers  *Triggers // nil for none
	// Baseline means that each case also runs without the skill.
	Baseline bool
	// Others are the keys that the suite sets besides, Settings those of config that only say how to run
	// it, such as "config.workers".
	Others, Settings []string
	// Losses are the parts that the format cannot say. Write adds to them.
	Losses []Loss
}

// A Loss is a part of a suite that a format cannot say.
type Loss struct {
	// Part names it: a key of the suite, or a task and its key.
	Part string `json:"part"`
	// Reason explains why, or what the format does instead; empty if it has no equivalent.
	Reason string `json:"reason,omitempty"`
	// Verdict means that verdicts can change without the part.
	Verdict bool `json:"verdict,omitempty"`
}

// Lose adds a loss.
func (d *Document) Lose(verdict bool, part, reason string) {
	d.Losses = append(d.Losses, Loss{Part: part, Reason: reason, Verdict: verdict})
}

// A Case is a task of a suite with the graders that apply to it.
type Case struct {
	ID, Name, Description, Prompt string
	Tags, FollowUps               []string
	Files                         []File
	Checks                        []Check
	Others                        []string // keys that the task sets besides
}

// A File is an input of a case: Content, or the file at the absolute path Source, at Path in the
// workspace.
type File struct {
	Path, Source string
	Content      *string
}

// A Check is a grader of a case.
type Check struct {
	Name, Type string
	Weight     float64
	Config     map[string]any
	Others     []string // keys that the grader sets besides
}

// Triggers are trigger tests.
type Triggers struct {
	// Threshold is nil if every trial must be right.
	Threshold *float64
	FirstTool bool
	Trials    int
	Prompts   []TriggerPrompt
}

// A TriggerPrompt is a prompt of trigger tests.
type TriggerPrompt struct {
	Prompt, Skill, Reason string
	Should                bool
	Acceptable, Forbidden []string
	// Half means that the prompt has half the weight of others.
	Half bool
}

// EncodeJSON returns a value as JSON for people: indented, without escapes for HTML, and with a
// newline at the end.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}
