// Package exit has the exit codes of waza and the errors that say which code the
// program ends with. Commands call [Usagef] or [New] for what went wrong, and
// [OfRun] for how a run ended; [ProblemOf] gives any error its code and hint.
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

// The exit codes of waza. Of several runs the highest counts; of one run with both
// failures and errors the errors do, as nobody knows what it would have shown.
const (
	Passed      = 0
	Failed      = 1
	Usage       = 2
	Error       = 3
	Interrupted = 130
	Pipe        = 141 // as a shell reports SIGPIPE
)

// Codes says what the codes mean, in help texts and documents.
const Codes = `  0    all tasks passed, or the command did its work
  1    some task failed, a metric missed its threshold, a trigger test timed out
       unanswered, or a trial waits for review; with --fail-on unmeasured, a metric
       with a threshold could not be measured
  2    wrong usage, or an invalid suite
  3    the harness could not do its work (errors; they outrank failures), or the
       run's budget was spent
  130  interrupted
  141  the program that read the output closed it, as in waza list | head -1`

// Problem is an error that says with which code the program ends, and perhaps
// what to do about it.
type Problem struct {
	Code int
	Err  error  // nil when all has been said already
	Hint string // what to type or install; may be empty
}

func (e *Problem) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Problem) Unwrap() error { return e.Err }

// New makes an error that ends the program with a code. The hint may be empty.
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
		return &Problem{Usage, err, "name one of them"}
	case errors.As(err, &outside):
		return &Problem{Usage, err, "name the file that the link leads to"}
	case errors.As(err, &content):
		return &Problem{Usage, err, ""}
	case errors.As(err, &unknown):
		return &Problem{Usage, err, ""}
	case errors.As(err, &selection) && selection.Skipped != "":
		return &Problem{Usage, err, "choose a shorter context_tokens, or give the window in config.context_windows"}
	case errors.As(err, &selection) && selection.Unmeasured != "":
		return &Problem{Usage, err, "--executor NAME has an agent do it"}
	case errors.As(err, &selection):
		return &Problem{Usage, err, "waza tasks SUITE lists tasks and their tags"}
	case errors.As(err, &limit):
		return &Problem{Usage, err, ""}
	case errors.As(err, &review):
		return &Problem{Usage, err, "waza review RUN --list --all tells what is asked"}
	case errors.As(err, &busy) && busy.GoesOn:
		return &Problem{Usage, err, "waza runs cancel " + busy.RunID + " ends it"}
	case errors.As(err, &busy):
		return &Problem{Usage, err, "waza runs show " + busy.RunID + " tells how it stands"}
	case errors.As(err, &silent):
		return &Problem{Error, err, fmt.Sprintf("it may be halted: kill -CONT %d lets it go on, kill -KILL %[1]d ends it and its runs", silent.PID)}
	case errors.As(err, &several):
		return &Problem{Usage, err, "give more of the id"}
	case errors.Is(err, record.ErrRunNotFound):
		return &Problem{Usage, err, "waza runs lists the runs"}
	}
	return &Problem{Code: Error, Err: err}
}
