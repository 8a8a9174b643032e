package assist

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// proposals are the items for one place in a document, and the text that they replace.
type proposals struct {
	document   string
	node       *node // contains the mark
	offset     int
	replace    Range // in the document, without mark
	typed      string
	items      []Item
	incomplete bool
	// before precedes the inserted text: a missing dash, or the space after a colon.
	before string
}

// place determines the text to replace: the part of the scalar at the mark that is on this line.
func (p *proposals) place() bool {
	r := p.node.inner()
	r.End = max(r.End-len(mark), p.offset)
	r.Start = min(r.Start, p.offset)
	if strings.Contains(p.document[r.Start:p.offset], "\n") && p.node.style != literal {
		return false
	}
	r.Start = max(r.Start, 1+strings.LastIndexByte(p.document[:p.offset], '\n'))
	if i := strings.IndexByte(p.document[p.offset:r.End], '\n'); i >= 0 {
		r.End = p.offset + len(strings.TrimRight(p.document[p.offset:p.offset+i], "\r"))
	}
	p.replace = r
	p.typed = p.document[r.Start:p.offset]
	return true
}

// opensLine reports whether only the dash of its item precedes the scalar on its line.
func (p *proposals) opensLine() bool {
	line := 1 + strings.LastIndexByte(p.document[:p.replace.Start], '\n')
	return p.node.style == plain && (p.node.parent == nil || !p.node.parent.flow) &&
		strings.Trim(p.document[line:p.replace.Start], " \t-\uFEFF") == ""
}

// add proposes an item. The default label is the inserted text.
func (p *proposals) add(it Item) {
	if it.Insert == "" {
		it.Insert = it.Label
		it.Snippet = false
	}
	it.Insert = p.before + it.Insert
	if it.Filter == "" {
		it.Filter = it.Label
	}
	if p.node.style == plain && (strings.HasPrefix(p.typed, `"`) || strings.HasPrefix(p.typed, "'")) {
		it.Filter = p.typed[:1] + it.Filter // replaces an unclosed quote, too
	}
	it.Label = strings.TrimLeft(p.before, " ") + it.Label
	for _, have := range p.items {
		if have.Label == it.Label {
			return
		}
	}
	p.items = append(p.items, it)
}

// text proposes a text, in quotes where YAML needs them.
func (p *proposals) text(it Item) {
	if p.node.item != nil && slices.ContainsFunc(p.node.parent.values(), func(n *node) bool { return n.text() == it.Label }) {
		return // already in the list
	}
	it.Insert = it.Label
	if p.node.style == plain {
		it.Insert = quoted(it.Label)
	}
	p.add(it)
}

// quoted returns a text as YAML: in quotes if it must be.
func quoted(text string) string {
	if b, err := yaml.Marshal(text); err == nil && !strings.Contains(strings.TrimSpace(string(b)), "\n") {
		return strings.TrimSpace(string(b))
	}
	return text
}

// column returns the column where the replaced text starts.
func (p *proposals) column() int {
	return p.replace.Start - 1 - strings.LastIndexByte(p.document[:p.replace.Start], '\n') + len(strings.TrimLeft(p.before, " "))
}
