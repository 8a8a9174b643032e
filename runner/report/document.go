package report

import (
	"io"
	"strings"
)

// A document has sections with a table, lines below it, or both. It can be printed on terminals
// and written as Markdown.
type document struct{ sections []*section }

type section struct {
	title string // can be empty
	rows  [][]item
	lines [][]item
	// spare lists the columns to drop first if a terminal is too narrow.
	spare []int
}

// An item is a piece of a line, or a cell.
type item struct {
	text   string
	colour colour
	// code marks text of others, which must not act as Markdown.
	code bool
}

func plain(s string) item { return item{text: s} }
func code(s string) item  { return item{text: s, code: true} }

func heads(names ...string) []item {
	items := make([]item, len(names))
	for i, n := range names {
		items[i] = item{text: n, colour: bold}
	}
	return items
}

func (d *document) section(title string) *section {
	s := &section{title: title}
	d.sections = append(d.sections, s)
	return s
}

func (s *section) add(cells ...item)  { s.rows = append(s.rows, cells) }
func (s *section) line(items ...item) { s.lines = append(s.lines, items) }

func (s *section) empty() bool { return s.title == "" && len(s.rows)+len(s.lines) == 0 }

// text prints the document.
func (d *document) text(w io.Writer, o Options) error {
	p := printer{Options: o}
	p.document(d)
	_, err := io.WriteString(w, p.String())
	return err
}

// document prints a document, with a blank line before each section unless it comes first.
func (p *printer) document(d *document) {
	for _, s := range d.sections {
		if s.empty() {
			continue
		}
		if p.Len() > 0 {
			p.WriteByte('\n')
		}
		if s.title != "" {
			p.WriteString(p.paint(bold, s.title) + "\n")
		}
		s.narrow(p.Width, s.spare...)
		p.writeTable(s.textRows())
		for _, line := range s.lines {
			for _, it := range line {
				p.WriteString(p.paint(it.colour, Clean(it.text)))
			}
			p.WriteByte('\n')
		}
	}
}

// narrow drops columns of the table, in the given order, until the table fits the terminal.
func (s *section) narrow(width int, columns ...int) {
	for _, column := range columns {
		if rows := s.textRows(); width > 0 && len(rows) > 0 && tableColumns(rows, leastName) > width {
			for i := range s.rows {
				s.rows[i][column] = item{}
			}
		}
	}
}

func (s *section) textRows() []row {
	var rows []row
	for _, items := range s.rows {
		var r row
		for _, it := range items {
			r.cells, r.colours = append(r.cells, Clean(it.text)), append(r.colours, it.colour)
		}
		rows = append(rows, r)
	}
	return rows
}

// markdown writes the document.
func (d *document) markdown(w io.Writer) error {
	var b strings.Builder
	for _, s := range d.sections {
		if s.empty() {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if s.title != "" {
			b.WriteString("**" + s.title + "**\n\n")
		}
		s.markdownTable(&b)
		if len(s.rows) > 0 && len(s.lines) > 0 {
			b.WriteByte('\n')
		}
		for _, line := range s.lines {
			b.WriteString("- ")
			for _, it := range line {
				b.WriteString(it.markdown(codeSpan))
			}
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *section) markdownTable(b *strings.Builder) {
	for i, items := range s.rows {
		b.WriteByte('|')
		for _, it := range items {
			if i == 0 {
				it.colour = 0 // heads are already bold
			}
			b.WriteString(" " + it.markdown(codeCell) + " |")
		}
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(items)) + "\n")
		}
	}
}

// markdown makes colored text bold.
func (it item) markdown(asCode func(string) string) string {
	switch text := strings.TrimSpace(it.text); {
	case it.code:
		return asCode(it.text)
	case it.colour == 0 || text == "":
		return it.text
	default:
		return strings.Replace(it.text, text, "**"+text+"**", 1)
	}
}
