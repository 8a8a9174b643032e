package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/eval"
	"waza/runner"
	"waza/runner/report"
)

// The exit codes. Of several runs the highest counts; of one run with both
// failures and errors the errors do, as nobody knows what it would have shown.
const (
	exitPassed      = 0
	exitFailed      = 1
	exitUsage       = 2
	exitError       = 3
	exitInterrupted = 130
	exitPipe        = 141 // as a shell reports SIGPIPE
)

// exitCodes tells what the codes mean, in help texts and documents.
const exitCodes = `  0    all tasks passed, or the command did its work
  1    some task failed, a metric missed its threshold, a trigger test timed out
       unanswered, or a trial waits for review; with --fail-on unmeasured, a metric
       with a threshold could not be measured
  2    wrong usage, or an invalid suite
  3    the harness could not do its work (errors; they outrank failures), or the
       run's budget was spent
  130  interrupted
  141  the program that read the output closed it, as in waza list | head -1`

// problem is an error that says with which code the program ends, and perhaps
// what to do about it.
type problem struct {
	code int
	err  error  // nil when all has been said already
	hint string // what to type or install; may be empty
}

func (e *problem) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *problem) Unwrap() error { return e.err }

// usage makes an error about how the program was called.
func usage(hint, format string, args ...any) error {
	return &problem{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// exit ends the program with a code, nothing more to be said.
func exit(code int) error {
	if code == exitPassed {
		return nil
	}
	return &problem{code: code}
}

// fail says what went wrong, if anything did, and returns the exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitPassed
	}
	pr := problemOf(err)
	if errors.Is(err, errBrokenPipe) && errors.Is(p.stdout.err, errBrokenPipe) {
		return exitPipe // the reader has what it wanted
	}
	if pr.err != nil {
		fmt.Fprintf(p.stderr, "waza: %s\n", clean(pr.err.Error()))
		if pr.hint != "" {
			fmt.Fprintf(p.stderr, "hint: %s\n", clean(pr.hint))
		}
	}
	return pr.code
}

// clean makes each line of a message safe to print. Further lines are indented and
// marked, so that what an agent wrote cannot be taken for a line of its own.
func clean(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = report.Clean(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n  | ")
}

// problemOf gives any error its code and hint.
func problemOf(err error) *problem {
	var (
		pr        *problem
		notFound  *eval.NotFoundError
		ambiguous *eval.AmbiguousError
		unknown   *runner.UnknownExecutorError
		selection *runner.SelectionError
		limit     *runner.LimitError
		review    *runner.ReviewError
		busy      *runner.BusyError
		silent    *runner.SilentError
		several   *runner.AmbiguousRunError
		outside   *eval.OutsideError
		content   *runner.ContentError
	)
	switch {
	case errors.As(err, &pr):
		return pr
	case errors.As(err, &notFound), errors.As(err, &ambiguous) && len(ambiguous.Suites) == 0:
		return &problem{exitUsage, err, "waza list [DIR] finds the suites below a directory"}
	case errors.As(err, &ambiguous):
		return &problem{exitUsage, err, "name one of them"}
	case errors.As(err, &outside):
		return &problem{exitUsage, err, "name the file that the link leads to"}
	case errors.As(err, &content):
		return &problem{exitUsage, err, ""}
	case errors.As(err, &unknown):
		return &problem{exitUsage, err, ""}
	case errors.As(err, &selection) && selection.Unmeasured != "":
		return &problem{exitUsage, err, "--executor NAME has an agent do it"}
	case errors.As(err, &selection):
		return &problem{exitUsage, err, "waza tasks SUITE lists tasks and their tags"}
	case errors.As(err, &limit):
		return &problem{exitUsage, err, ""}
	case errors.As(err, &review):
		return &problem{exitUsage, err, "waza review RUN --list --all tells what is asked"}
	case errors.As(err, &busy) && busy.GoesOn:
		return &problem{exitUsage, err, "waza runs cancel " + busy.RunID + " ends it"}
	case errors.As(err, &busy):
		return &problem{exitUsage, err, "waza runs show " + busy.RunID + " tells how it stands"}
	case errors.As(err, &silent):
		return &problem{exitError, err, fmt.Sprintf("it may be halted: kill -CONT %d lets it go on, kill -KILL %[1]d ends it and its runs", silent.PID)}
	case errors.As(err, &several):
		return &problem{exitUsage, err, "give more of the id"}
	case errors.Is(err, runner.ErrRunNotFound):
		return &problem{exitUsage, err, "waza runs lists the runs"}
	}
	return &problem{code: exitError, err: err}
}

// usageOf says in our words what the flag library found.
func usageOf(command string) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		msg := err.Error()
		// invalid value "x" for flag -trials: parse error
		if rest, ok := strings.CutPrefix(msg, "invalid value "); ok {
			if value, rest, ok := strings.Cut(rest, " for flag -"); ok {
				name, _, _ := strings.Cut(rest, ":")
				msg = fmt.Sprintf("--%s: %s is not a value it takes", name, value)
			}
		}
		return usage(command+" --help tells what there is", "%s", msg)
	}
}
