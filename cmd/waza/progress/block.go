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

// block is the display for a terminal: a few lines that are redrawn in place. Permanent lines
// are printed above them.
//
//	warning: before_run hook "make": exit status 2      stays, scrolls away
//	demo  ███████░░░░░  7/12 trials  3.1 s, about 2 s left   ┐
//	2 tasks passed, 1 failed                                 │ the block
//	  explain-sql-join  trial 2 of 3  0.4 s                  ┘
//
// The hidden cursor rests at the start of the line below the block. The block's height follows
// from the widths of its lines and the terminal's current width, because a narrower terminal
// wraps lines. Libraries for progress bars move up by the number of lines they wrote, which
// leaves half of such lines on the screen. That is why waza uses none of them.
type block struct {
	lines    *lines // the lines above, and their format
	progress *progress
	screen   io.Writer
	size     func() (columns, rows int)

	drawn []int // columns of the lines on the screen
	shown bool  // whether anything was drawn since close
}

func (b *block) event(e *record.Event) {
	b.progress.run.Apply(e)
	if e.Type.IsLog() && b.lines.shows(e) {
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

// draw replaces the block on the screen with its current lines.
func (b *block) draw(now time.Time) {
	columns, rows := b.size()
	b.replace("", b.progress.lines(now, columns, rows), columns)
}

// above prints a permanent line. It erases the block, which the next draw restores soon.
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
	_, _ = io.WriteString(b.screen, s.String()) // SIGHUP reports a terminal that is gone
}

// erase returns the text that removes the block from a screen of that many columns.
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
