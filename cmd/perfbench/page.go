package main

import (
	"fmt"
	"strings"
)

// page returns docs/performance.md. It depends only on the accepted figures and on the measures.
func page(a accepted) string {
	var b strings.Builder
	b.WriteString(head)
	figures(&b, a.Table)
	b.WriteString("\n## Measures\n")
	for _, m := range measures() {
		m.describe(&b)
	}
	a.Guard.describe(&b)
	return b.String()
}

const head = `# Performance

After this page you know how fast waza is, how each figure is measured, and how much of it no implementation can save.

` + "`make bench`" + ` measures this table, then runs the benchmarks of the packages. The program is ` + "`cmd/perfbench`" + `.
It measures waza from outside, as a client or a shell sees it. The *floor* of a figure is the least that the machine needs for
the same work. Figures and floors are measured in turns in the same run, because the load of a machine changes. Each is the
median of several rounds.

## Figures

`

// figures writes the table of accepted figures and the machine.
func figures(b *strings.Builder, r results) {
	tableRow(b, "measure", "figure", "floor", "ratio", "target", "reached")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, m := range measures() {
		for _, row := range m.rows {
			if f, ok := r.Rows[row.name]; ok {
				tableRow(b, row.cells(f)...)
			} else {
				tableRow(b, row.name, "not measured", "–", "–", "–", "–")
			}
		}
	}
	m := r.Machine
	fmt.Fprintf(b, "\nMeasured on %s with %d cores of %s, %s, %s", m.Date, m.Cores, m.Processor, m.Platform, m.Go)
	if m.Load != "" {
		fmt.Fprintf(b, ", at a load average of %s", m.Load)
	}
	b.WriteString(". `make performance` measures all rows and writes this page.\n" +
		"The targets are for a quiet machine of this kind. `make bench` prints them and does not fail when one is missed,\n" +
		"because times depend on the machine.\n")
}

// describe writes the section of a measure.
func (m measure) describe(b *strings.Builder) {
	names := make([]string, len(m.rows))
	for i, r := range m.rows {
		names[i] = r.name
	}
	title := strings.Join(names, ", ")
	fmt.Fprintf(b, "\n### %s\n\n%s\n", strings.ToUpper(title[:1])+title[1:], m.how)
	if m.floor != "" {
		fmt.Fprintf(b, "\nFloor: %s\n", m.floor)
	}
	if m.slow {
		b.WriteString("\nIt takes minutes, so `make bench BENCHFLAGS=-short` leaves it out.\n")
	}
}

// describe writes the section of the guard.
func (g guard) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\n## The guard\n\nSome figures do not depend on the machine. `%s` holds their accepted values for %s on %s.\n"+
		"`make bench` fails if one of them is more than %.0f %% worse, and names the figure. CI does the same.\n"+
		"`make bench-accept` accepts the figures of the working tree, after a cause was found or an improvement was made.\n"+
		"With another version of Go or on another platform, the guard compares nothing and prints a notice.\n\n",
		acceptedFile, g.Go, g.Platform, 100*tolerance)
	tableRow(b, "figure", "accepted")
	b.WriteString("|---|---|\n")
	for _, r := range guardedRows() {
		if value, ok := g.Figures[r.name]; ok {
			tableRow(b, r.name, r.text(value))
		}
	}
}

func tableRow(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
