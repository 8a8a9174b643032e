// Package grader defines what scores a finished trial: the [Grader] interface,
// what a grader sees ([Subject]), what it yields ([Score]) and the [Registry]
// in which graders are found by type. The families of graders are the packages
// below it; [Registry.Bind] builds a grader of a suite.
package grader

import (
	"context"
	"os"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/record"
)

// Grader scores finished trials. It is built once per run from one grader of a
// suite or task and used by all workers, so Grade must be safe for concurrent use.
type Grader interface {
	// Grade scores one trial. An error means that the grader could not do its
	// work (a missing interpreter, say), which makes the trial an error and
	// neither passed nor failed; the agent's shortcomings are a Score. When
	// ctx ends, Grade stops all it started and returns promptly.
	Grade(ctx context.Context, s *Subject) (Score, error)
}

// Score is a grader's judgement of one trial.
type Score struct {
	// Score is in [0, 1].
	Score  float64
	Passed bool
	// Feedback tells a person why, in a line or a few. Empty when all is well.
	Feedback string
	// Details are the single checks, if the grader has more to say; must encode as JSON.
	Details any
	// NeedsReview: a person has to give the score.
	NeedsReview bool
	// Usage is what asking models cost, beside an error as well; nil when none was asked.
	Usage *record.Usage
	// Tools are the tool scores of the trial; nil when the grader expects no calls.
	Tools *record.TrialTools
}

// Check is one thing a grader looked at, for Score.Details.
type Check struct {
	Check  string `json:"check"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}

// Subject is a finished attempt at a trial, as graders see it. Graders must not
// change what it refers to.
type Subject struct {
	RunID string
	Suite *eval.Suite
	Task  *eval.Task
	Num   int // trial, 1-based
	// Prompt is the first prompt as it was sent.
	Prompt string
	Output string
	// OutputDropped is how many bytes of the output are missing in Output, because
	// they were beyond a limit.
	OutputDropped int64
	Transcript    []record.Entry
	// ToolCalls and Skills are those of the transcript, in order.
	ToolCalls []record.ToolCall
	Skills    []string
	// Errors are the error entries of the transcript.
	Errors []string
	// Usage is nil when the executor reported none.
	Usage    *record.Usage
	Duration time.Duration
	// Dir returns the workspace as the executor left it. It is made at the
	// first call, so a grader that needs none should not ask.
	Dir func() (string, error)
	// Root opens the workspace as the agent was given it, whatever is at its path
	// now. The caller closes it. Nil means that Dir is opened.
	Root func() (*os.Root, error)
	// Destroyed says what the agent did to its workspace, which it deleted or
	// replaced; empty when it left it in place. No grader passes such a trial.
	Destroyed string
	// Temp is the directory below which graders put their temporary files, made at
	// need. It is removed after a crash, too; empty means the system's.
	Temp string
	// Lost says that what stood at a path of a recorded workspace is not known,
	// or, when the path is empty, that this is so of anything in it. Nil means
	// that all is there.
	Lost func(path string) error
	// Env is the environment for programs, as os.Environ has it.
	Env []string
	// Expand fills the template variables of a text of the suite.
	Expand func(text string) string
	// Baseline is what the same task gave without the skills; nil when it was
	// not run so. Pairwise judges compare with it.
	Baseline *record.Baseline
	// Capabilities are those of the executor.
	Capabilities executor.Capabilities

	// entriesDropped says which entries the transcript misses; empty for none.
	entriesDropped string
}

// NewSubject fills the fields that follow from the transcript.
func NewSubject(s Subject) *Subject {
	s.entriesDropped = dropped(s.Transcript)
	for i := range s.Transcript {
		switch e := &s.Transcript[i]; e.Type {
		case record.EntryToolCall:
			if e.Tool != nil {
				s.ToolCalls = append(s.ToolCalls, *e.Tool)
			}
		case record.EntrySkill:
			s.Skills = append(s.Skills, e.Text)
		case record.EntryError:
			s.Errors = append(s.Errors, e.Text)
		}
	}
	return &s
}

// Kind is a grader as the registry knows it.
type Kind struct {
	eval.Kind
	// New builds the grader that spec describes; spec.Options is decoded and
	// checked. Nil means that suites may use it, but this program cannot
	// grade with it, and each trial it applies to ends in error.
	New func(spec *eval.Grader, env *Env) (Grader, error)
	// Preflight looks for what would keep the grader from working on this
	// machine. It is called once with all the suite's graders of this kind.
	// Nil means nothing can be missing.
	Preflight func(ctx context.Context, specs []*eval.Grader, env *Env) []Finding
}

// Finding is something on this machine that keeps a grader from working, or a
// fault that only the tool a grader uses can find.
type Finding struct {
	Grader *eval.Grader
	// Path is the place in the grader's config, as keys and indexes; empty for the grader itself.
	Path     []any
	Severity decode.Severity
	Code     decode.Code
	Message  string
}
