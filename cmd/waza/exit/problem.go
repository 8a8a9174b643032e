// Package exit defines the exit codes of waza and the errors that carry one. Commands call
// [Usagef] or [New] for errors and [OfRun] for the result of a run. [ProblemOf] gives any error
// its code and hint.
package exit

import (
	"errors"
	"fmt"

	"waza/eval/discover"
	"waza/eval/files"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
)

// The exit codes of waza. The highest code of several runs counts. Errors outrank failures in
// one run, because the result without the errors is unknown.
const (
	Passed      = 0
	Failed      = 1
	Usage       = 2
	Error       = 3
	Interrupted = 130
	Pipe        = 141 // as a shell reports SIGPIPE
)

// Codes describes the codes, for help texts and documents.
const Codes = `  0    all tasks passed, or the command did its work
  1    some task failed, a metric missed its threshold, a trigger test timed out
       unanswered, or a trial waits for review; with --fail-on unmeasured, a metric
       with a threshold could not be measured; with --fail-on suspicious, a trial
       passed with suspicious moves
  2    wrong usage, or an invalid suite
  3    the harness could not do its work (errors; they outrank failures), or the
       run's budget was spent
  130  interrupted
  141  the program that read the output closed it, as in waza list | head -1`

// A Problem is an error with the program's exit code and, optionally, a hint how to fix it.
type Problem struct {
	Code int
	Err  error  // nil when everything has been printed already
	Hint string // what to type or install; can be empty
}

func (e *Problem) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Problem) Unwrap() error { return e.Err }

// New makes an error that ends the program with a code. The hint can be empty.
func New(code int, err error, hint string) error { return &Problem{code, err, hint} }

// Usagef makes an error about how the program was called.
func Usagef(hint, format string, args ...any) error {
	return &Problem{Code: Usage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// With returns an error that ends the program with a code and prints nothing; nil
// for [Passed].
func With(code int) error {
	if code == Passed {
		return nil
	}
	return &Problem{Code: code}
}

// ProblemOf gives any error its code and hint.
func ProblemOf(err error) *Problem {
	var (
		pr        *Problem
		notFound  *discover.NotFoundError
		ambiguous *discover.AmbiguousError
		unknown   *record.UnknownExecutorError
		selection *record.SelectionError
		limit     *record.LimitError
		fleet     *record.FleetError
		revision  *record.RevisionError
		question  *record.QuestionError
		review    *regrade.ReviewError
		busy      *record.BusyError
		silent    *runner.SilentError
		several   *catalog.AmbiguousRunError
		outside   *files.OutsideError
		content   *plan.ContentError
	)
	switch {
	case errors.As(err, &pr):
		return pr
	case errors.As(err, &notFound), errors.As(err, &ambiguous) && len(ambiguous.Suites) == 0:
		return &Problem{Usage, err, "waza list [DIR] finds the suites below a directory"}
	case errors.As(err, &ambiguous):
		return &Problem{Usage, err, "name one of the suites"}
	case errors.As(err, &outside):
		return &Problem{Usage, err, "name the target of the link"}
	case errors.As(err, &content), errors.As(err, &unknown), errors.As(err, &limit), errors.As(err, &fleet), errors.As(err, &revision),
		errors.As(err, &question):
		return &Problem{Usage, err, ""}
	case errors.As(err, &selection) && selection.Skipped != "":
		return &Problem{Usage, err, "choose a shorter context_tokens, or give the window in config.context_windows"}
	case errors.As(err, &selection) && selection.Unmeasured != "":
		return &Problem{Usage, err, "choose an executor that runs an agent: --executor NAME"}
	case errors.As(err, &selection):
		return &Problem{Usage, err, "waza tasks SUITE lists tasks and their tags"}
	case errors.As(err, &review):
		return &Problem{Usage, err, "waza review RUN --list --all lists the questions"}
	case errors.As(err, &busy) && busy.Running:
		return &Problem{Usage, err, "waza runs cancel " + busy.RunID + " ends it"}
	case errors.As(err, &busy):
		return &Problem{Usage, err, "waza runs show " + busy.RunID + " prints its result"}
	case errors.As(err, &silent):
		return &Problem{
			Error, err,
			fmt.Sprintf("it might be suspended: kill -CONT %d continues it, kill -KILL %[1]d ends it and its runs", silent.PID),
		}
	case errors.As(err, &several):
		return &Problem{Usage, err, "give more of the id"}
	case errors.Is(err, record.ErrRunNotFound):
		return &Problem{Usage, err, "waza runs lists the runs"}
	}
	return &Problem{Code: Error, Err: err}
}
