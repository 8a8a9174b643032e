package main

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
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/watch"
)

// checkWatch refuses what makes no sense for runs without an end.
func checkWatch(o runOptions, paths []string) error {
	switch {
	case o.output != "":
		return exit.Usagef("--json prints the result of each run as a line", "--watch and --output do not go together")
	case len(paths) != 1:
		return exit.Usagef("name one: waza run --watch "+paths[0], "--watch watches one suite, not %d", len(paths))
	}
	_, err := discover.Find(paths[0], files.View{})
	return err
}

// watch runs a suite, and what has changed of it with each change, until somebody
// interrupts it. That is how it ends well, and yet no success.
func (s *session) watch(path string) int {
	w, err := watch.New(s.stop.Context(), s.runner, watch.Options{Path: path, Request: s.options.request})
	if err != nil {
		return s.refuse(path, nil, watchProblem(err))
	}
	defer s.endWatch(w)
	for {
		round, err := w.Next(s.stop.Context())
		if err != nil {
			return exit.Interrupted
		}
		if code := s.round(path, round); code == exitLeft || errors.Is(s.stdout.Err(), output.ErrBrokenPipe) {
			return code
		}
		if s.stop.Level() > 0 {
			return exit.Interrupted
		}
		fmt.Fprintf(s.stderr, "waza: watching %s (Ctrl-C ends)\n", output.Clean(path))
	}
}

// endWatch waits for a run that was started and not shown yet.
func (s *session) endWatch(w *watch.Watch) {
	w.Close()
	if s.stop.Level() < interrupt.Leave {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
		defer cancel()
		_ = s.runner.Close(ctx) // what is left is ended by the guard
	}
}

// watchProblem says what to do where files cannot be watched.
func watchProblem(err error) error {
	var e *watch.Error
	if errors.As(err, &e) {
		return exit.New(exit.Error, err, e.Hint)
	}
	return err
}

// round tells what has changed, and shows the run of it.
func (s *session) round(path string, r *watch.Round) int {
	if len(r.Files) > 0 {
		fmt.Fprintln(s.stderr, output.Clean(changed(r)))
	}
	if err := s.printDiagnostics(s.worthTelling(r.Diagnostics)); err != nil {
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
	if r.Run.Cancelled() && s.stop.Level() == 0 && !s.options.json {
		fmt.Fprintln(s.stderr, "waza: cancelled, for what was to be run has changed")
		return exit.Passed
	}
	code, err := s.tell(r.Run)
	if err != nil {
		return s.refuse(path, nil, err)
	}
	return code
}

// changed tells of a round in one line.
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

// fromHere is a path as one types it in this directory.
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
