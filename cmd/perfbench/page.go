package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// page returns docs/performance.md. It depends only on the accepted figures and on the measures.
func page(a accepted) string {
	var b strings.Builder
	b.WriteString(head)
	figures(&b, a)
	b.WriteString("\n## Measures\n")
	for _, m := range measures() {
		m.describe(&b)
	}
	a.Guard.describe(&b)
	comparison(&b, a.Table)
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

// figures writes the table of accepted figures and their machines.
func figures(b *strings.Builder, a accepted) {
	r := a.Table
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
	fmt.Fprintf(b, "\nMeasured %s. ", r.Machine)
	later := map[machine][]string{}
	for _, row := range slices.Sorted(maps.Keys(a.Apart)) {
		later[a.Apart[row]] = append(later[a.Apart[row]], "*"+row+"*")
	}
	for _, m := range slices.SortedFunc(maps.Keys(later), func(a, b machine) int { return cmp.Compare(later[a][0], later[b][0]) }) {
		fmt.Fprintf(b, "Measured apart %s: %s. ", m, strings.Join(later[m], ", "))
	}
	b.WriteString("`make performance` measures all rows and writes this page.\n" +
		"The targets are for a quiet machine of this kind. `make bench` prints them and does not fail when one is missed,\n" +
		"because times depend on the machine.\n")
}

// String returns the date, the machine and its load.
func (m machine) String() string {
	s := fmt.Sprintf("on %s with %d cores of %s, %s, %s", m.Date, m.Cores, m.Processor, m.Platform, m.Go)
	if m.Load != "" {
		s += ", at a load average of " + m.Load
	}
	return s
}

// describe writes the section of a measure.
func (m measure) describe(b *strings.Builder) {
	names := make([]string, len(m.rows))
	for i, r := range m.rows {
		names[i] = "*" + r.name + "*"
	}
	fmt.Fprintf(b, "\n### %s\n\n%s: %s\n", m.title, strings.Join(names, ", "), m.how)
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
		"`make bench-accept` accepts the figures of the working tree, for example after an improvement. A commit that makes\n"+
		"one of them worse explains why.\n"+
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

// comparison writes the section about other tools.
func comparison(b *strings.Builder, r results) {
	b.WriteString("\n## Other tools\n\nAn earlier comparison on a machine of this kind found waza 80 to 450 times as fast as microsoft/waza, depending on the\n" +
		"measure. microsoft/waza was not measured again for this page.\n\n`make performance PROMPTFOO=DIR` measures the promptfoo that npm " +
		"installed in a directory, and waza for the same work,\nin turns in the same run.")
	if r.Machine.Promptfoo != "" {
		fmt.Fprintf(b, " This is promptfoo %s.", r.Machine.Promptfoo)
	}
	b.WriteString("\n")
	measured := false
	for _, m := range peers() {
		for _, row := range m.rows {
			f, ok := r.Rows[row.name]
			if !ok {
				continue
			}
			if !measured {
				b.WriteString("\n")
				tableRow(b, "measure", "figure", "waza", "ratio")
				b.WriteString("|---|---|---|---|\n")
			}
			measured = true
			tableRow(b, row.cells(f)[:4]...)
		}
	}
	for _, m := range peers() {
		m.describe(b)
	}
}

func tableRow(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
