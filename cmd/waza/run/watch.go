package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/watch"
)

// checkWatch rejects flags that make no sense for runs without an end.
func checkWatch(o runflags.Options, paths []string) error {
	switch {
	case o.Output != "":
		return exit.Usagef("--json prints the result of each run as one line", "--watch and --output cannot be combined")
	case len(paths) != 1:
		return exit.Usagef("name one suite: waza run --watch "+paths[0], "--watch watches one suite, got %d", len(paths))
	}
	_, err := discover.Find(paths[0], files.View{})
	return err
}

// watch runs a suite, and reruns the affected tasks after each change, until a signal interrupts
// it. The code is then [exit.Interrupted], although nothing failed.
func (s *session) watch(path string) int {
	w, err := watch.New(s.stop.Context(), s.runner.Runner, watch.Options{Path: path, Request: s.options.Request})
	if err != nil {
		return s.refuse(path, nil, watchProblem(err))
	}
	defer s.endWatch(w)
	for {
		round, err := w.Next(s.stop.Context())
		if err != nil {
			return exit.Interrupted
		}
		if code := s.round(path, round); code == exitLeft || errors.Is(s.Stdout.Err(), output.ErrBrokenPipe) {
			return code
		}
		if s.stop.Level() > 0 {
			return exit.Interrupted
		}
		fmt.Fprintf(s.Stderr, "waza: watching %s (Ctrl-C ends)\n", output.Clean(path))
	}
}

// endWatch waits for a run that was started but not yet shown.
func (s *session) endWatch(w *watch.Watch) {
	w.Close()
	if s.stop.Level() < interrupt.Leave {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
		defer cancel()
		_ = s.runner.Close(ctx) // the guard ends the rest
	}
}

// watchProblem adds a hint to an error of watching files.
func watchProblem(err error) error {
	var e *watch.Error
	if errors.As(err, &e) {
		return exit.New(exit.Error, err, e.Hint)
	}
	return err
}

// round prints the changes, and shows the run that they cause.
func (s *session) round(path string, r *watch.Round) int {
	if len(r.Files) > 0 {
		fmt.Fprintln(s.Stderr, output.Clean(changed(r)))
	}
	if err := s.Diagnostics(s.notable(r.Diagnostics)); err != nil {
		return exit.Error
	}
	switch {
	case r.Diagnostics.HasErrors():
		return s.refuse(path, r.Diagnostics, s.invalid(path, r.Diagnostics))
	case r.Err != nil:
		return s.refuse(path, nil, watchProblem(r.Err))
	case r.Run == nil:
		return exit.Passed
	}
	if !s.follow(r.Run) {
		return exitLeft
	}
	<-r.Run.Done()
	if r.Run.Cancelled() && s.stop.Level() == 0 && !s.options.JSON {
		fmt.Fprintln(s.Stderr, "waza: cancelled because the suite changed")
		return exit.Passed
	}
	code, err := s.printEnded(r.Run)
	if err != nil {
		return s.refuse(path, nil, err)
	}
	return code
}

// changed describes a round in one line.
func changed(r *watch.Round) string {
	const most = 3
	var names []string
	for _, file := range r.Files[:min(len(r.Files), most)] {
		names = append(names, fromHere(file))
	}
	line := strings.Join(names, ", ")
	if n := len(r.Files) - most; n > 0 {
		line += fmt.Sprintf(" and %d more", n)
	}
	line += " changed"
	switch {
	case r.Run != nil:
		line += fmt.Sprintf(": running %d of %s", len(r.Tasks), text.Count(r.Total, "task", "tasks"))
	case r.Err == nil && !r.Diagnostics.HasErrors():
		line += ": nothing to run"
	}
	return line
}

// fromHere returns a path as one types it in this directory.
func fromHere(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if wd, err = filepath.EvalSymlinks(wd); err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
