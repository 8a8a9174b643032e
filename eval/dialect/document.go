package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A Document is the content of a suite for [Dialect.Write], without places.
type Document struct {
	// Dir is the absolute directory of the suite, File the path of the file or folder to write.
	Dir, File                         string
	Name, Description, Version, Skill string
	// Templates means that texts can have template variables.
	Templates bool
	Cases     []Case
	Triggers  *Triggers // nil for none
	// Baseline means that each case also runs without the skill.
	Baseline bool
	// Others are the keys that the suite sets besides, Settings those of config that only say how to run
	// it, such as "config.workers".
	Others, Settings Keys
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

	inCase bool // a comment in the file names it
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
	Skills                        []string // absolute directories of the skills that its agent gets
	Others                        Keys     // keys that the task sets besides, such as "inputs.setup"
}

// A File is an input of a case, or a file that a writer wrote: Content, or the file or folder at the absolute
// path Source, at Path in the workspace or in the folder of the suite. Path has slashes.
type File struct {
	Path, Source string
	Content      *string
}

// TextFile returns a file with a content.
func TextFile(path, content string) File { return File{Path: path, Content: &content} }

// A Check is a grader of a case.
type Check struct {
	Name, Type string
	Weight     float64
	Config     map[string]any
	Others     Keys // keys that the grader sets besides; a [Group] with the key "group"
}

// A Group is a group of graders as its members know it.
type Group struct {
	Name      string
	Weight    float64
	Threshold *float64
	Optional  bool
	Aggregate string // empty for the mean
}

// A CaseCheckpoint grades a case after a turn, which counts from 1. Lists of them have the key
// "inputs.checkpoints" of a case.
type CaseCheckpoint struct {
	AfterTurn    int
	AgentTimeout float64 // in seconds; 0 for none
	OnFailure    string  // "continue" if empty
	Checks       []Check
	Files        []File
	Setup        []string
}

// A Solution is the known right way to do a case. It has the key "solution" of a case.
type Solution struct {
	Script string // absolute path of the script; empty without one
	Files  []File
	Output string
	// FollowUps are the solutions for the follow-up prompts. Without them, the script runs for each.
	FollowUps []Solution
}

// Keys are keys with their values. Writers take those that a format can say, and lose the rest.
type Keys []Key

// A Key is a key with its value, whose type is that of the suite's field. Paths are absolute.
type Key struct {
	Name  string
	Value any
	// OfExecutor means that a key of config is an option of the executor.
	OfExecutor bool
}

// LoseSetting adds the loss of a setting. System prompts decide verdicts.
func (d *Document) LoseSetting(key Key) {
	switch {
	case !key.OfExecutor:
		d.Lose(false, key.Name, "waza run has flags for it")
	case key.Name == "config.system_prompt":
		d.Lose(true, key.Name, "the agent gets no system prompt")
	default:
		d.Lose(false, key.Name, "an option of the executor, which the other tool does not have")
	}
}

// Take removes a key and returns its value; ok is false if it is absent or has another type.
func Take[T any](keys *Keys, name string) (value T, ok bool) {
	for i, k := range *keys {
		if k.Name != name {
			continue
		}
		if value, ok = k.Value.(T); ok {
			*keys = slices.Delete(slices.Clone(*keys), i, i+1)
		}
		return value, ok
	}
	return value, false
}

// Has reports whether a key is among the keys.
func (k Keys) Has(name string) bool {
	return slices.ContainsFunc(k, func(key Key) bool { return key.Name == name })
}

// A Message is one of the conversation before a prompt, in the key inputs.history.
type Message struct{ Role, Text string }

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

// JSONFile returns a file with a value as JSON for people: indented, without escapes for HTML, and with a
// newline at the end.
func JSONFile(path string, v any) ([]File, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return []File{TextFile(path, b.String())}, err
}
