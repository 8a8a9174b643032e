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
	none := Completion{Range: Range{offset, offset}}
	q, n := a.askAt(d, offset)
	if n == nil {
		return none
	}
	p := &proposals{document: d.Text, node: n, offset: offset}
	if !p.place() {
		return none
	}
	c := completer{q, p, keyProposals{q, p, snippets}, valueProposals{q, p}}
	c.propose()
	return Completion{Items: p.items, Range: p.replace, Incomplete: p.incomplete}
}

// A completer decides whether keys, values or both can be at the mark.
type completer struct {
	*query
	*proposals
	keys   keyProposals
	values valueProposals
}

func (c completer) propose() {
	if c.values.variables() || c.node.style == literal || c.node.kind != scalar {
		return
	}
	n := c.node
	switch {
	case n.isKey():
		c.keys.propose(n.parent, c.tree.shapes(n.parent))
	case n.item != nil && n.item.dash < 0:
		c.missingDash(n)
	default:
		views := c.tree.shapes(n)
		if i := c.replace.Start - 1; i >= 0 && strings.IndexByte(":-", c.document[i]) >= 0 && n.style == plain {
			c.before = " "
		}
		c.values.propose(views)
		if c.opensLine() && c.before == "" && !strings.Contains(c.typed, "/") {
			c.keys.propose(nil, views)
			c.dashes(views)
		}
	}
}

// missingDash proposes items for a line of a list without a dash.
func (c completer) missingDash(n *node) {
	if line := 1 + strings.LastIndexByte(c.document[:c.replace.Start], '\n'); c.replace.Start-line == n.parent.column {
		c.dashes(c.tree.shapes(n.parent))
	}
}

func (c completer) dashes(list []view) {
	if c.node.item != nil && c.node.item.dash >= 0 {
		return
	}
	c.before = "- "
	views := c.tree.items(list, c.node)
	c.values.propose(views)
	c.keys.propose(nil, views)
	c.before = ""
}
