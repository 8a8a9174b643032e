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
	rows  []row
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

func plains(texts ...string) row {
	items := make(row, len(texts))
	for i, s := range texts {
		items[i].text = s
	}
	return items
}

func heads(names ...string) row {
	items := plains(names...)
	for i := range items {
		items[i].colour = bold
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

// document prints a document, if there is one, with a blank line before each section unless it
// comes first.
func (p *printer) document(d *document) {
	if d == nil {
		return
	}
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
		rows := s.cleanRows()
		p.narrow(rows, leastName, s.spare...)
		p.writeTable(rows)
		for _, line := range s.lines {
			for _, it := range line {
				p.WriteString(p.paint(it.colour, Clean(it.text)))
			}
			p.WriteByte('\n')
		}
	}
}

// cleanRows returns a copy of the rows that is safe to print.
func (s *section) cleanRows() []row {
	rows := make([]row, len(s.rows))
	for i, items := range s.rows {
		for _, it := range items {
			rows[i] = append(rows[i], item{text: Clean(it.text), colour: it.colour})
		}
	}
	return rows
}

// markdown returns the document as Markdown.
func (d *document) markdown() string {
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
				b.WriteString(it.markdown(CodeSpan))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
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
