package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"waza/runner/report"
)

// terminalOf returns the file behind w when that is a terminal, else nil.
func terminalOf(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// inputTerminal returns the file behind r when that is a terminal, else nil.
func inputTerminal(r io.Reader) *os.File {
	f, ok := r.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// canMove reports whether w is a terminal on which the cursor can be moved.
func canMove(w io.Writer) bool {
	return terminalOf(w) != nil && os.Getenv("TERM") != "dumb"
}

// colours decides whether what is written to w has colours: NO_COLOR forbids
// them, CLICOLOR_FORCE asks for them, and else a terminal that can has them.
func colours(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return canMove(w)
}

// terminalSize returns the columns and rows of a terminal, or what is usual
// when it does not know.
func terminalSize(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// reportOptions are how reports look on w.
func (p *program) reportOptions(w io.Writer) report.Options {
	o := report.Options{Color: colours(w)}
	if f := terminalOf(w); f != nil {
		o.Width, _ = terminalSize(f)
	}
	return o
}
