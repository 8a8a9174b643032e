package main

import (
	"fmt"
	"go/version"
	"io"
	"slices"
	"strings"
)

// A guard holds the accepted figures that do not depend on the machine, and the versions of which
// they do depend.
type guard struct {
	Go       string             `json:"go"` // language version, such as go1.26
	Platform string             `json:"platform"`
	Figures  map[string]float64 `json:"figures"`
}

// tolerance is the share by which a figure may be worse than the accepted one.
const tolerance = 0.05

// check compares measured figures with the accepted ones. It returns an error that names all
// figures that are more than 5 % worse, and prints a notice about those that are more than 5 % better.
func (g guard) check(measured results, notices io.Writer) error {
	if !g.comparable(measured.Machine) {
		fmt.Fprintf(notices, "notice: the guard compared nothing: %s has figures of %s on %s, and this is %s on %s\n",
			acceptedFile, g.Go, g.Platform, minor(measured.Machine.Go), measured.Machine.Platform)
		return nil
	}
	var worse []string
	for _, r := range guardedRows() {
		now, ok := measured.Rows[r.name]
		before, known := g.Figures[r.name]
		if !ok || !known {
			continue
		}
		change := fmt.Sprintf("%s: %s before, now %s (%+.1f %%)", r.name, r.text(before), r.text(now.Value), 100*(now.Value/before-1))
		switch {
		case now.Value > before*(1+tolerance):
			worse = append(worse, change)
		case now.Value < before*(1-tolerance):
			fmt.Fprintf(notices, "notice: %s; make bench-accept keeps the improvement\n", change)
		}
	}
	if len(worse) == 0 {
		return nil
	}
	return fmt.Errorf("these figures are more than %.0f %% worse than those in %s:\n  %s\nfind the cause, or accept them with make bench-accept and "+
		"explain them in the commit", 100*tolerance, acceptedFile, strings.Join(worse, "\n  "))
}

// comparable reports whether the figures of the machine can be compared with the accepted ones.
func (g guard) comparable(m machine) bool { return g.Go == minor(m.Go) && g.Platform == m.Platform }

// minor returns the language version of a version of Go.
func minor(v string) string {
	if lang := version.Lang(v); lang != "" {
		return lang
	}
	return v // a version in development
}

// guardedRows lists the rows that the guard compares.
func guardedRows() (rows []row) {
	for _, m := range measures() {
		rows = append(rows, slices.DeleteFunc(slices.Clone(m.rows), func(r row) bool { return !r.guarded })...)
	}
	return rows
}
