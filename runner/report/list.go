package report

import (
	"io"
	"strings"
)

// Table prints rows of cells; the first row is the head. It makes cells safe to print and omits
// nothing. A cell that is too wide is broken at blanks. If its words do not fit, each row
// becomes a paragraph that starts with the first cell and has a line for each other cell. All
// rows have as many cells as the head.
func Table(w io.Writer, rows [][]string, o Options) error {
	clean := make([][]string, len(rows))
	for i, cells := range rows {
		for _, c := range cells {
			clean[i] = append(clean[i], Clean(c))
		}
	}
	p := printer{Options: o}
	if widths, ok := fit(clean, o.Width); ok {
		p.broken(clean, widths)
	} else {
		p.paragraphs(clean)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// fit divides width columns among the columns of a table. ok is false if the longest words do
// not fit side by side. The first cells of rows are never broken.
func fit(rows [][]string, width int) (widths []int, ok bool) {
	var natural []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(natural) {
				natural, widths = append(natural, 0), append(widths, 0)
			}
			natural[i] = max(natural[i], Columns(c))
			if i == 0 {
				widths[i] = natural[i]
				continue
			}
			for word := range strings.FieldsSeq(c) {
				widths[i] = max(widths[i], Columns(word))
			}
		}
	}
	if width <= 0 || sum(natural) <= width {
		return natural, true
	}
	room := width - sum(widths)
	if room < 0 {
		return nil, false
	}
	for room > 0 { // the columns that lack the most grow first
		most := 0
		for i := range widths {
			if natural[i]-widths[i] > natural[most]-widths[most] {
				most = i
			}
		}
		widths[most]++
		room--
	}
	for i, most := range widths { // shrink columns whose words end before the column does
		widths[i] = 0
		for _, cells := range rows {
			for _, part := range Wrap(cells[i], most) {
				widths[i] = max(widths[i], Columns(part))
			}
		}
	}
	return widths, true
}

func (p *printer) broken(rows [][]string, widths []int) {
	for i, cells := range rows {
		var broken [][]string
		lines := 1
		for j, c := range cells {
			parts := Wrap(c, widths[j])
			broken, lines = append(broken, parts), max(lines, len(parts))
		}
		for n := range lines {
			line, blanks := "", 0
			for j, parts := range broken {
				part := ""
				if n < len(parts) {
					part = parts[n]
				}
				if part != "" {
					line += strings.Repeat(" ", blanks) + p.paint(headColour(i), part)
					blanks = 0
				}
				if widths[j] > 0 {
					blanks += widths[j] - Columns(part) + gap
				}
			}
			p.WriteString(line + "\n")
		}
	}
}

func headColour(row int) colour {
	if row == 0 {
		return bold
	}
	return 0
}

func (p *printer) paragraphs(rows [][]string) {
	if len(rows) == 0 {
		return
	}
	head := rows[0]
	indent := 0
	for _, h := range head[1:] {
		indent = max(indent, Columns(h))
	}
	for _, cells := range rows[1:] {
		p.WriteString(cells[0] + "\n")
		for j, c := range cells[1:] {
			if c == "" {
				continue
			}
			lead := "  " + p.paint(bold, head[j+1]) + strings.Repeat(" ", indent-Columns(head[j+1])+gap)
			for _, part := range Wrap(c, max(1, p.Width-2-indent-gap)) {
				p.WriteString(lead + part + "\n")
				lead = strings.Repeat(" ", 2+indent+gap)
			}
		}
	}
}
