// Package terminal reports the abilities of the terminal behind a stream. Call [Options] for the
// format of reports on it, [CanMove] before moving its cursor, and [Lines] for what people type.
package terminal

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"waza/runner/report"
)

// Control sequences of terminals.
const (
	HideCursor   = "\x1b[?25l"
	ShowCursor   = "\x1b[?25h"
	ClearToEnd   = "\x1b[J"
	CursorUp     = "\x1b[%dA"
	BeginAtomic  = "\x1b[?2026h" // terminals with this feature show no half-drawn block
	FinishAtomic = "\x1b[?2026l"
)

// Of returns the file behind w if it is a terminal, else nil.
func Of(w io.Writer) *os.File {
	if o, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = o.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// Input returns the file behind r if it is a terminal, else nil.
func Input(r io.Reader) *os.File {
	f, ok := r.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// CanMove reports whether w is a terminal on which the cursor can be moved.
func CanMove(w io.Writer) bool {
	return Of(w) != nil && os.Getenv("TERM") != "dumb"
}

// Colors reports whether output to w has colors. NO_COLOR forbids them, CLICOLOR_FORCE
// requires them; otherwise terminals that support colors have them.
func Colors(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return CanMove(w)
}

// Size returns the columns and rows of a terminal, or the usual numbers if they are unknown.
func Size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Options returns the format of reports on w.
func Options(w io.Writer) report.Options {
	o := report.Options{Color: Colors(w)}
	if f := Of(w); f != nil {
		o.Width, _ = Size(f)
	}
	return o
}

// Resized returns a channel that signals changes of a terminal's size. The caller must call
// stop.
func Resized() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// maxLine limits the size of a typed line, in bytes.
const maxLine = 1 << 20

// Lines reads the lines of an input in a goroutine that ends with the input, and then closes the
// channel. A read from a terminal cannot be interrupted. If no one receives the line, the
// goroutine ends with the program.
func Lines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	return lines
}
