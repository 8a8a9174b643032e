package output

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/terminal"
	"waza/eval/decode"
	"waza/runner/report"
)

// Streams are the standard streams of the process.
//
//   - Stdout gets the result: a table, a document, the protocol. With --json it
//     gets JSON and nothing else.
//   - Stderr is for people: progress, findings, logs, errors.
type Streams struct {
	Stdin  io.Reader
	Stdout *Stdout
	Stderr io.Writer
}

// Logger returns a logger that writes to stderr from a level up, as JSON if that is set.
func (s Streams) Logger(level slog.Level, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(s.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(s.Stderr, o))
}

// Diagnostics prints findings to stderr, for commands whose result is something else.
func (s Streams) Diagnostics(ds decode.Diagnostics) error {
	return report.Diagnostics(s.Stderr, ds, terminal.Options(s.Stderr))
}

// Fail prints err, if it is not nil, and returns the exit code.
func (s Streams) Fail(err error) int {
	if err == nil {
		return exit.Passed
	}
	pr := exit.ProblemOf(err)
	if errors.Is(err, ErrBrokenPipe) && errors.Is(s.Stdout.Err(), ErrBrokenPipe) {
		return exit.Pipe // the reader closed the pipe
	}
	if pr.Err != nil {
		fmt.Fprintf(s.Stderr, "waza: %s\n", Clean(pr.Err.Error()))
		if pr.Hint != "" {
			fmt.Fprintf(s.Stderr, "hint: %s\n", Clean(pr.Hint))
		}
	}
	return pr.Code
}
