package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"waza/runner"
	"waza/runner/report"
)

// display shows a run to people while it goes on. It belongs to one goroutine,
// abandon apart.
type display interface {
	event(e *runner.Event)
	// note tells something that is not of the run.
	note(text string)
	// draw brings the display up to date.
	draw(now time.Time)
	// close leaves the place to whoever prints next.
	close()
	// abandon leaves the terminal usable when there is no time for close. It
	// may be called while another goroutine is in one of the others.
	abandon()
}

// newDisplay is a block that is drawn anew in place on a terminal, and lines elsewhere.
func (s *session) newDisplay(rep *report.Report) display {
	lines := &lines{w: s.stderr, options: report.Options{Color: colours(s.stderr)}, verbose: s.options.verbose}
	if f := terminalOf(s.stderr); f != nil && canMove(s.stderr) {
		return &block{
			lines: lines, progress: newProgress(rep.Record), screen: f,
			size: func() (int, int) { return terminalSize(f) },
		}
	}
	return lines
}

// notifyResize tells when a terminal changed its size. The caller calls stop.
func notifyResize() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// lines is the display for logs and pipes: a line for each task that ended and
// for what the run has to tell.
type lines struct {
	w       io.Writer
	options report.Options
	verbose bool
}

func (l *lines) event(e *runner.Event) {
	switch {
	case e.Type == runner.TaskComplete:
		fmt.Fprintln(l.w, report.Line(e, l.options))
	case e.Type == runner.Log && l.tells(e):
		fmt.Fprintln(l.w, logLine(e))
	}
}

// tells reports whether a log event is for those who did not ask for more.
func (l *lines) tells(e *runner.Event) bool {
	return l.verbose || e.Level == "warning" || e.Level == "error"
}

func logLine(e *runner.Event) string {
	if e.TaskID == "" {
		return fmt.Sprintf("%s: %s", e.Level, clean(e.Message))
	}
	return fmt.Sprintf("%s: %s: %s", e.Level, report.Clean(e.TaskID), clean(e.Message))
}

func (l *lines) note(text string) { fmt.Fprintf(l.w, "waza: %s\n", text) }
func (l *lines) draw(time.Time)   {}
func (l *lines) close()           {}
func (l *lines) abandon()         {}
