// Package terminal knows what the terminal behind a stream can do. Call [Options]
// for how reports look on it, and [CanMove] before its cursor is moved.
package terminal

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"waza/runner/report"
)

// What a terminal understands.
const (
	HideCursor   = "\x1b[?25l"
	ShowCursor   = "\x1b[?25h"
	ClearToEnd   = "\x1b[J"
	CursorUp     = "\x1b[%dA"
	BeginAtomic  = "\x1b[?2026h" // terminals that know it show no half-drawn block
	FinishAtomic = "\x1b[?2026l"
)

// Of returns the file behind w when that is a terminal, else nil.
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

// Input returns the file behind r when that is a terminal, else nil.
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

// Colours decides whether what is written to w has colours: NO_COLOR forbids
// them, CLICOLOR_FORCE asks for them, and else a terminal that can has them.
func Colours(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return CanMove(w)
}

// Size returns the columns and rows of a terminal, or what is usual
// when it does not know.
func Size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Options are how reports look on w.
func Options(w io.Writer) report.Options {
	o := report.Options{Color: Colours(w)}
	if f := Of(w); f != nil {
		o.Width, _ = Size(f)
	}
	return o
}

// Resized tells when a terminal changed its size. The caller calls stop.
func Resized() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
