package assist

import "strings"

// block scans the next node if its column is at least column; nil otherwise. outer is the column
// of the map or list that contains it.
func (s *scanner) block(column, outer int) *node {
	if s.skip() || s.column() < column || s.depth >= maxDepth {
		return nil
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.step == 0 && outer >= 0 && s.column() > outer {
		s.step = s.column() - outer
	}
	s.properties()
	if !s.spaces() && s.skip() || s.column() < column {
		return nil
	}
	switch {
	case s.dash():
		return s.sequence(s.column(), outer)
	case s.key() != nil || s.keyBelow():
		return s.mapping(s.column())
	}
	return s.inline(outer)
}

// keyBelow reports whether this line is an incomplete key: whether the next line has a key at
// the same column, or can be the value of a key.
func (s *scanner) keyBelow() bool {
	if c := s.text[s.pos]; strings.IndexByte("[{\"'|>*", c) >= 0 {
		return false
	}
	ahead := s.cursor
	ahead.nextLine()
	if ahead.skip() || ahead.column() < s.column() {
		return false
	}
	if ahead.dash() {
		return ahead.column() > s.column()
	}
	return ahead.key() != nil
}

func (s *scanner) mapping(column int) *node {
	n := s.startNode(mapping, column)
	for {
		before := s.pos
		if s.skip() || s.column() < column {
			break
		}
		switch {
		case s.column() > column || s.dash():
			s.stray(n, column)
		default:
			n.add(s.entry(column))
		}
		if s.pos == before {
			s.nextLine()
		}
	}
	return n
}

// stray adds lines that belong to no key: as the value of the last key, if that has none.
func (s *scanner) stray(n *node, column int) {
	value := s.block(column, column)
	if value == nil {
		return
	}
	if len(n.pairs) > 0 {
		if last := n.pairs[len(n.pairs)-1]; last.value == nil {
			last.value = value
			value.parent, value.pair = n, last
			return
		}
	}
	n.add(&pair{colon: -1, value: value})
}

func (s *scanner) entry(column int) *pair {
	p := &pair{colon: -1}
	if k := s.key(); k != nil {
		p.key = s.leaf(Range{k.start, k.end}, k.style)
		p.colon = k.colon
		s.pos = k.colon + 1
		p.value = s.value(column)
		return p
	}
	p.key = s.plainLine()
	if !s.skip() && s.column() > column {
		p.value = s.block(column+1, column)
	}
	return p
}

func (s *scanner) value(column int) *node {
	s.anchor = ""
	s.properties()
	if s.spaces() {
		return s.inline(column)
	}
	if s.skip() {
		return nil
	}
	if s.column() == column && s.dash() {
		return s.sequence(column, column)
	}
	return s.block(column+1, column)
}

// sequence scans the items whose dashes are at a column. If the keys around it have the same
// column, a line without a dash is the next key.
func (s *scanner) sequence(column, outer int) *node {
	n := s.startNode(sequence, column)
	for {
		before := s.pos
		if s.skip() || s.column() < column {
			break
		}
		it := &item{dash: -1}
		if s.column() == column && s.dash() {
			it.dash = s.pos
			s.pos++
			s.anchor = ""
			it.value = s.block(column+1, column)
		} else if column == outer {
			break
		} else {
			it.value = s.block(column, column)
		}
		n.addItem(it)
		if s.pos == before {
			s.nextLine()
		}
	}
	return n
}
