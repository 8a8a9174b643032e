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
	// interrupted tells that an interrupt took the run to a step, see interrupts.
	interrupted(step int, now time.Time)
	// draw brings the display up to date.
	draw(now time.Time)
	// close leaves the place to whoever prints next.
	close()
	// abandon leaves the terminal usable when there is no time for close. It
	// may be called while another goroutine is in one of the others.
	abandon()
}

// newDisplay is a block that is drawn anew in place on a terminal, and lines elsewhere.
func (v *viewer) newDisplay(rep *report.Report) display {
	p := progressOf(rep)
	lines := &lines{w: v.stderr, options: report.Options{Color: colours(v.stderr)}, verbose: v.verbose, progress: p}
	if f := terminalOf(v.stderr); f != nil && canMove(v.stderr) {
		return &block{
			lines: lines, progress: p, screen: f,
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
	w        io.Writer
	options  report.Options
	verbose  bool
	progress *progress
	noticed  time.Time // when the last notice was printed
}

func (l *lines) event(e *runner.Event) {
	l.progress.apply(e)
	switch {
	case e.Type == runner.TaskComplete:
		fmt.Fprintln(l.w, report.Line(e, l.options))
	case e.Type == runner.Log && l.tells(e):
		fmt.Fprintln(l.w, logLine(e))
	case e.Type == runner.RunResumed:
		fmt.Fprintln(l.w, resumedLine(e))
	}
}

func resumedLine(e *runner.Event) string { return "waza: " + clean(e.Message) }

// tells reports whether a log event is for those who did not ask for more.
func (l *lines) tells(e *runner.Event) bool {
	// The table has the reasons of trials in error, once each.
	return l.verbose || (e.Level == "warning" || e.Level == "error") && e.Verdict == ""
}

func logLine(e *runner.Event) string {
	if e.TaskID == "" {
		return fmt.Sprintf("%s: %s", e.Level, clean(e.Message))
	}
	return fmt.Sprintf("%s: %s: %s", e.Level, report.Clean(e.TaskID), clean(e.Message))
}

// noticeInterval is how often lines tell what an interrupted run waits for.
const noticeInterval = 10 * time.Second

func (l *lines) interrupted(step int, now time.Time) {
	l.progress.interrupted(step, now)
	l.notice(now)
}

func (l *lines) notice(now time.Time) {
	l.noticed = now
	fmt.Fprintf(l.w, "waza: %s\n", l.progress.notice(now))
}

func (l *lines) draw(now time.Time) {
	if l.progress.step == stepStop && now.Sub(l.noticed) >= noticeInterval {
		l.notice(now)
	}
}

func (l *lines) close()   {}
func (l *lines) abandon() {}
