package progress

import (
	"fmt"
	"io"
	"time"

	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/runner/record"
	"waza/runner/report"
)

// display shows an active run to people. One goroutine uses it; only abandon can be called from
// others.
type display interface {
	event(e *record.Event)
	// interrupted records that an interrupt took the run to a step, see [interrupt.Steps].
	interrupted(step int, now time.Time)
	// draw brings the display up to date.
	draw(now time.Time)
	// close ends the display and leaves the cursor for the next output.
	close()
	// abandon leaves the terminal usable when there is no time for close. It can be called while
	// another goroutine runs one of the other methods.
	abandon()
}

// newDisplay returns a block that is redrawn in place on a terminal, and lines elsewhere.
func (v *Viewer) newDisplay(rec *record.Run) display {
	p := newProgress(rec, v.Earlier)
	lines := &lines{w: v.Stderr, options: report.Options{Color: terminal.Colors(v.Stderr)}, verbose: v.Verbose, progress: p}
	if f := terminal.Of(v.Stderr); f != nil && terminal.CanMove(v.Stderr) {
		return &block{
			lines: lines, progress: p, screen: f,
			size: func() (int, int) { return terminal.Size(f) },
		}
	}
	return lines
}

// lines is the display for logs and pipes: a line for each task that ended and for each message
// of the run.
type lines struct {
	w        io.Writer
	options  report.Options
	verbose  bool
	progress *progress
	noticed  time.Time // when the last notice was printed
}

func (l *lines) event(e *record.Event) {
	l.progress.run.Apply(e)
	switch {
	case e.Type == record.TaskComplete:
		fmt.Fprintln(l.w, report.Line(e, l.options))
	case e.Type.IsLog() && l.shows(e):
		fmt.Fprintln(l.w, logLine(e))
	case e.Type == record.DecideProgress && l.verbose && e.Deciding != nil:
		fmt.Fprintln(l.w, report.Clean(e.Deciding.Text))
	case e.Type == record.RunResumed:
		fmt.Fprintln(l.w, resumedLine(e))
	}
}

func resumedLine(e *record.Event) string { return "waza: " + output.Clean(e.Message) }

// shows reports whether to print a log event.
func (l *lines) shows(e *record.Event) bool {
	// The table lists the reasons of trials with errors, once each.
	return l.verbose || (e.Level == "warning" || e.Level == "error") && e.Verdict == ""
}

func logLine(e *record.Event) string {
	if e.TaskID == "" {
		return fmt.Sprintf("%s: %s", e.Level, output.Clean(e.Message))
	}
	return fmt.Sprintf("%s: %s: %s", e.Level, report.Clean(e.TaskID), output.Clean(e.Message))
}

// noticeInterval is how often lines print what an interrupted run waits for.
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
	if l.progress.step == interrupt.Stop && now.Sub(l.noticed) >= noticeInterval {
		l.notice(now)
	}
}

func (l *lines) close()   {}
func (l *lines) abandon() {}
