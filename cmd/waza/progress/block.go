package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"waza/cmd/waza/terminal"
	"waza/runner/record"
	"waza/runner/report"
)

// block is the display for a terminal: a few lines that are drawn anew in place.
// What is to stay is printed above them.
//
//	warning: before_run hook "make": exit status 2      stays, scrolls away
//	demo  ███████░░░░░  7/12 trials  3.1 s, about 2 s left   ┐
//	2 tasks passed, 1 failed                                 │ the block
//	  explain-sql-join  trial 2 of 3  0.4 s                  ┘
//
// The cursor rests, hidden, at the beginning of the line below the block. How
// far up the block begins is worked out from the widths of its lines and the
// width that the terminal has now: one that got narrower has broken them.
// Libraries for progress bars go up by the number of lines they wrote, and leave
// half of them on the screen then; that is why this is none of them.
type block struct {
	lines    *lines // what is printed above, and how
	progress *progress
	screen   io.Writer
	size     func() (columns, rows int)

	drawn []int // columns of the lines on the screen
	shown bool  // whether anything was drawn since close
}

func (b *block) event(e *record.Event) {
	b.progress.run.Apply(e)
	if e.Type.IsLog() && b.lines.tells(e) {
		b.above(logLine(e))
	}
	if e.Type == record.RunResumed {
		b.above(resumedLine(e))
	}
	if e.Type == record.TaskComplete && b.lines.verbose {
		b.above(report.Line(e, b.lines.options))
	}
}

func (b *block) interrupted(step int, now time.Time) {
	b.progress.interrupted(step, now)
	b.draw(now)
}

// draw replaces what is on the screen by what there is to show now.
func (b *block) draw(now time.Time) {
	columns, rows := b.size()
	b.replace("", b.progress.lines(now, columns, rows), columns)
}

// above prints something that stays, and takes the block away until it is drawn
// again, which is soon.
func (b *block) above(text string) {
	columns, _ := b.size()
	b.replace(text+"\n", nil, columns)
}

func (b *block) replace(above string, lines []line, columns int) {
	var s strings.Builder
	s.WriteString(terminal.BeginAtomic)
	if !b.shown {
		s.WriteString(terminal.HideCursor)
		b.shown = true
	}
	s.WriteString(b.erase(columns) + above)
	b.drawn = b.drawn[:0]
	for _, l := range lines {
		s.WriteString(l.text(b.lines.options.Color) + "\n")
		b.drawn = append(b.drawn, l.columns())
	}
	s.WriteString(terminal.FinishAtomic)
	_, _ = io.WriteString(b.screen, s.String()) // a terminal that is gone sends SIGHUP
}

// erase takes the block off a screen of that many columns.
func (b *block) erase(columns int) string {
	rows := 0
	for _, n := range b.drawn {
		rows += max(1, (n+columns-1)/max(1, columns))
	}
	if rows == 0 {
		return ""
	}
	return "\r" + fmt.Sprintf(terminal.CursorUp, rows) + terminal.ClearToEnd
}

func (b *block) close() {
	if !b.shown {
		return
	}
	columns, _ := b.size()
	_, _ = io.WriteString(b.screen, b.erase(columns)+terminal.ShowCursor)
	b.drawn, b.shown = nil, false
}

func (b *block) abandon() { _, _ = io.WriteString(b.screen, terminal.ShowCursor) }
