package assist

import "strings"

// A Sort is the type of a proposal; editors show an icon for each.
type Sort int

// The types of items.
const (
	Key      Sort = iota // a key of a map
	Value                // one of several allowed values
	Kind                 // a type of graders, or an executor
	File                 // a file, or a pattern of files
	Folder               // a directory
	Variable             // a template variable
	Name                 // a name that is defined elsewhere
)

// An Item is one proposal.
type Item struct {
	Label  string
	Sort   Sort
	Detail string // a few words beside the label
	Doc    string // Markdown
	// Insert replaces the text in Range. If Snippet is set, it contains placeholders of the
	// Language Server Protocol.
	Insert  string
	Snippet bool
	// Filter is compared with the text in Range.
	Filter string
}

// A Completion lists the proposals for a position, the most likely first.
type Completion struct {
	Items []Item
	// Range is on one line and contains the position.
	Range Range
	// Incomplete means that more typing can produce other items.
	Incomplete bool
}

// Complete returns proposals for an offset. snippets is whether the editor supports items with
// placeholders.
func (a *Assistant) Complete(d Document, offset int, snippets bool) Completion {
	offset = within(d.Text, offset)
	q := a.ask(d)
	if q == nil {
		return Completion{Range: Range{offset, offset}}
	}
	t, n := scanAt(d.Text, offset)
	q.tree = t
	c := &completer{query: q, node: n, offset: offset, snippets: snippets}
	if n == nil || !c.place() {
		return Completion{Range: Range{offset, offset}}
	}
	c.propose()
	return Completion{Items: c.items, Range: c.replace, Incomplete: c.incomplete}
}

// A completer collects proposals for one place.
type completer struct {
	*query
	node       *node
	offset     int
	snippets   bool
	replace    Range // in the text without mark
	typed      string
	items      []Item
	incomplete bool
	// before precedes the inserted text: a missing dash, or the space after a colon.
	before string
}

// place determines the text to replace: the part of the scalar at the mark that is on this line.
func (c *completer) place() bool {
	r := c.node.inner()
	r.End = max(r.End-len(mark), c.offset)
	r.Start = min(r.Start, c.offset)
	if strings.Contains(c.Text[r.Start:c.offset], "\n") && c.node.style != literal {
		return false
	}
	r.Start = max(r.Start, 1+strings.LastIndexByte(c.Text[:c.offset], '\n'))
	if i := strings.IndexByte(c.Text[c.offset:r.End], '\n'); i >= 0 {
		r.End = c.offset + len(strings.TrimRight(c.Text[c.offset:c.offset+i], "\r"))
	}
	c.replace = r
	c.typed = c.Text[r.Start:c.offset]
	return true
}

func (c *completer) propose() {
	if c.variables() || c.node.style == literal || c.node.kind != scalar {
		return
	}
	n := c.node
	switch {
	case n.isKey():
		c.keys(n.parent, c.guide.of(c.tree, n.parent))
	case n.item != nil && n.item.dash < 0:
		c.missingDash(n)
	default:
		views := c.guide.of(c.tree, n)
		if i := c.replace.Start - 1; i >= 0 && strings.IndexByte(":-", c.Text[i]) >= 0 && n.style == plain {
			c.before = " "
		}
		c.values(views)
		if c.opensLine() && c.before == "" && !strings.Contains(c.typed, "/") {
			c.keys(nil, views)
			c.dashes(views)
		}
	}
}

// opensLine reports whether only the dash of its item precedes the scalar on its line.
func (c *completer) opensLine() bool {
	line := 1 + strings.LastIndexByte(c.Text[:c.replace.Start], '\n')
	return c.node.style == plain && (c.node.parent == nil || !c.node.parent.flow) &&
		strings.Trim(c.Text[line:c.replace.Start], " \t-\uFEFF") == ""
}

// missingDash proposes items for a line of a list without a dash.
func (c *completer) missingDash(n *node) {
	if line := 1 + strings.LastIndexByte(c.Text[:c.replace.Start], '\n'); c.replace.Start-line == n.parent.column {
		c.dashes(c.guide.of(c.tree, n.parent))
	}
}

// dashes proposes list items with their dashes.
func (c *completer) dashes(list []view) {
	if c.node.item != nil && c.node.item.dash >= 0 {
		return
	}
	c.before = "- "
	views := c.guide.items(c.tree, list, c.node)
	c.values(views)
	c.keys(nil, views)
	c.before = ""
}

// add proposes an item. The default label is the inserted text.
func (c *completer) add(it Item) {
	if it.Insert == "" {
		it.Insert = it.Label
		it.Snippet = false
	}
	it.Insert = c.before + it.Insert
	if it.Filter == "" {
		it.Filter = it.Label
	}
	if c.node.style == plain && (strings.HasPrefix(c.typed, `"`) || strings.HasPrefix(c.typed, "'")) {
		it.Filter = c.typed[:1] + it.Filter // replaces an unclosed quote, too
	}
	it.Label = strings.TrimLeft(c.before, " ") + it.Label
	for _, have := range c.items {
		if have.Label == it.Label {
			return
		}
	}
	c.items = append(c.items, it)
}

// column returns the column where the replaced text starts.
func (c *completer) column() int {
	return c.replace.Start - 1 - strings.LastIndexByte(c.Text[:c.replace.Start], '\n') + len(strings.TrimLeft(c.before, " "))
}

// indent returns the white space of a line one level below the replaced text.
func (c *completer) indent() string { return strings.Repeat(" ", c.column()+c.tree.step) }
