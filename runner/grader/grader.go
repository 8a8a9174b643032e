// Package grader defines how waza scores a finished trial. A [Grader] takes a [Subject] and
// returns a [Score]. A [Registry] finds graders by type, and [Registry.Bind] builds a grader of
// a suite. The packages below this one implement the families of graders.
package grader

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/record"
)

// A Grader scores finished trials. It is built once per run from one grader of a suite or task.
// All workers use it, so Grade must be safe for concurrent use.
type Grader interface {
	// Grade scores one trial. If the agent fell short, Grade returns a Score. An error means
	// that the grader could not do its work, for example because an interpreter is missing; the
	// trial is then an error, neither passed nor failed. When ctx ends, Grade stops everything
	// it started and returns promptly.
	Grade(ctx context.Context, s *Subject) (Score, error)
}

// A Score is a grader's judgement of one trial.
type Score struct {
	// Score is in [0, 1].
	Score  float64
	Passed bool
	// Feedback gives people the reason in one or a few lines. It is empty if all is well. waza
	// adds to it whether the score depends on self-reported tool calls, see [CallReader].
	Feedback string
	// Details lists the single checks, if the grader has any. It must encode as JSON.
	Details any
	// NeedsReview reports whether a person has to give the score.
	NeedsReview bool
	// Undecided reports that the grader could not judge the work for a reason that an agent can cause,
	// such as a program that runs too long on its output. The score is 0, and a negated grader fails,
	// too.
	Undecided bool
	// Usage is the cost of asking models, also set beside an error; nil if none was asked.
	Usage *record.Usage
	// Tools holds the tool scores of the trial; nil if the grader expects no calls.
	Tools *record.TrialTools
	// Compared reports whether the grader compared its files with their planned content when it
	// was done, and found no change.
	Compared bool
}

// A Check is one condition that a grader tested, for Score.Details.
type Check struct {
	Check  string `json:"check"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}

// A Subject is a finished attempt at a trial, as graders see it. Graders must not change
// anything it refers to.
type Subject struct {
	Suite *eval.Suite
	Task  *eval.Task
	// Prompt is the first prompt as sent to the agent.
	Prompt string
	Output string
	// Value is the output as JSON, if transform made a value other than a text of it; else nil.
	Value json.RawMessage
	// OutputDropped is the number of bytes that are missing in Output because they were beyond a
	// limit.
	OutputDropped int64
	Transcript    []record.Entry
	// ToolCalls and Skills come from the transcript, in order.
	ToolCalls []record.ToolCall
	Skills    []string
	// Errors holds the error entries of the transcript.
	Errors []string
	// Usage is nil if the executor reported none.
	Usage *record.Usage
	// Duration is how long the executor worked. Untimed reports that nobody knows.
	Duration time.Duration
	Untimed  bool
	// EndedEarly means that waza ended the agent because the verdict was decided.
	EndedEarly bool
	// Dir returns the workspace as the executor left it. The first call creates it, so a grader
	// that does not need the workspace should not call Dir.
	Dir func() (string, error)
	// Borrowed are directories of which the repositories in the workspace borrow objects. Programs
	// need to see them.
	Borrowed []string
	// Root opens the workspace directory that the agent was given, even if something else is at
	// its path now. The caller closes it. If Root is nil, Dir is opened.
	Root func() (*os.Root, error)
	// Destroyed describes how the agent deleted or replaced its workspace; empty if the
	// workspace is still in place. No grader passes a trial with a destroyed workspace.
	Destroyed string
	// Temp is the directory for graders' temporary files, created when needed. waza removes it
	// even after a crash. Empty means the system's.
	Temp string
	// Missing returns an error if the content of a path in a recorded workspace is unknown. An
	// empty path asks about the whole workspace. A nil Missing means that nothing is missing.
	Missing func(path string) error
	// Given returns a function that reports whether the workspace contained a file when the agent
	// started. Its error means that nobody knows. A nil Given means that the workspace was empty.
	Given func() (func(path string) bool, error)
	// Env is the environment for programs, in the form of os.Environ.
	Env []string
	// Expand fills in the template variables of a text of the suite.
	Expand func(text string) string
	// Reached are the results of the checkpoints, in the order of their turns. Graders of checkpoints
	// see none.
	Reached []record.Grade
	// Baseline is the result of the same task without the skills; nil if there was no such run.
	// Pairwise judges compare with it.
	Baseline *record.Baseline
	// Capabilities are those of the executor.
	Capabilities executor.Capabilities

	// entriesDropped describes the entries that the transcript lacks; empty for none.
	entriesDropped string
}

// NewSubject returns s with the fields filled in that follow from the transcript.
func NewSubject(s Subject) *Subject {
	s.ReadTranscript()
	return &s
}

var errUntimed = errors.New("the imported results have no time")

// Took returns how long the executor worked. Imported results do not always say so.
func (s *Subject) Took() (time.Duration, error) {
	if s.Untimed {
		return 0, executor.Permanent(errUntimed)
	}
	return s.Duration, nil
}

// ReadTranscript fills in the fields that follow from the transcript.
func (s *Subject) ReadTranscript() {
	s.entriesDropped = dropped(s.Transcript)
	s.ToolCalls, s.Skills, s.Errors = nil, nil, nil
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
}

// A Kind is a type of grader in a registry.
type Kind struct {
	eval.Kind
	// New builds the grader that spec describes; spec.Options is decoded and checked. If New is
	// nil, suites can name the type, but this program cannot grade with it: each trial with such
	// a grader ends in an error.
	New func(spec *eval.Grader, env *Env) (Grader, error)
	// Preflight looks for conditions on this machine that would keep the grader from working. It
	// is called once with all the suite's graders of this kind. Nil means that there are no such
	// conditions.
	Preflight func(ctx context.Context, specs []*eval.Grader, env *Env) []Finding
	// Needs lists what a machine needs to grade with the grader that spec describes, including
	// what this machine already has. Nil means nothing.
	Needs func(spec *eval.Grader, env *Env) []record.Need
}

// A Finding describes a condition of this machine that keeps a grader from working, or a fault
// that only the tool used by a grader can find.
type Finding struct {
	Grader *eval.Grader
	// Path is the place in the grader's config, as keys and indexes; empty for the grader
	// itself.
	Path     []any
	Severity decode.Severity
	Code     decode.Code
	Message  string
}
