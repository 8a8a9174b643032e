package triggers

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A group is the part of a file that is about one skill: a list for each sign, and near misses that say which skill
// is right in place of it.
type group struct {
	skill                    *yaml.Node // its name
	node                     *yaml.Node
	positive, negative, near []*yaml.Node // entries
}

// Keys of a group.
var (
	groupsKey = "skills"
	nearKeys  = []string{"near", "near_misses"}
	ownerKeys = []string{"skill", "skill_name", "name"}
)

// parts are the tests of a file. A file can have them in several forms.
type parts struct {
	positive, negative []*yaml.Node // entries of lists whose keys are their signs
	groups             []group
	entries            []*yaml.Node
	keys               map[string]bool // of the file that have these parts
	unread             []decode.Pair   // of the key skills that are no groups
}

// partsOf returns the tests of a file. named means that the name of the file says that it is a trigger set.
func partsOf(root *yaml.Node, named bool) (p parts) {
	p.keys = map[string]bool{}
	if root.Kind == yaml.SequenceNode {
		if p.groups = p.groupsOf(root, named); len(p.groups) == 0 && areEntries(root.Content, named) {
			p.entries = dialect.Items(root)
		}
		return p
	}
	if signed := signedIn(root, named); len(signed.positive) > 0 && len(signed.negative) > 0 || signed.hasBoth {
		p.positive, p.negative = signed.positive, signed.negative
		for _, key := range signed.keys {
			p.keys[key] = true
		}
	}
	groups := root
	if skills := decode.Follow(decode.Lookup(root, groupsKey)); skills != nil && skills.Kind != yaml.ScalarNode {
		groups = skills
	}
	if p.groups = p.groupsOf(groups, named); groups != root && len(p.groups) > 0 {
		p.keys[groupsKey] = true
	}
	if groups == root {
		p.unread = nil // these are keys of the file
		for _, g := range p.groups {
			p.keys[g.skill.Value] = true
		}
	}
	for _, key := range listKeys {
		if list := decode.Follow(decode.Lookup(root, key)); list != nil && list.Kind == yaml.SequenceNode {
			if areEntries(list.Content, named) {
				p.entries = append(p.entries, dialect.Items(list)...)
				p.keys[key] = true
			} else if len(list.Content) == 0 {
				p.keys[key] = true
			}
		}
	}
	return p
}

// hasLists reports whether the keys of lists are signs.
func (p *parts) hasLists() bool { return len(p.positive)+len(p.negative) > 0 }

// areEntries reports whether a list has entries, and only them or such without a query, which are left out.
func areEntries(list []*yaml.Node, named bool) bool {
	found := false
	for _, e := range list {
		e = decode.Follow(e)
		if isBlank(e) {
			continue
		}
		_, prompt := lookup(e, promptKeys)
		key, _ := signOf(e, named)
		_, statements := lookup(e, statementKeys)
		if !decode.IsText(prompt) || key == "" && !isRoute(e) || len(dialect.Items(statements)) > 0 || hasCheck(e) {
			return false
		}
		found = true
	}
	return found
}

// checkKey matches keys of checks of skill evals.
var checkKey = text.Pattern(`^(output_|file_)?(not_)?(contains(_all|_any)?|exists|matches|regex)$|^(must|should|never|do|does)_`)

// hasCheck reports whether an entry is also a case of skill evals, because it checks the answer.
func hasCheck(e *yaml.Node) bool {
	return slices.ContainsFunc(dialect.Pairs(e), func(p decode.Pair) bool {
		return !known(p.Key.Value) && !decode.IsNull(p.Value) && checkKey().MatchString(dialect.Snake(p.Key.Value))
	})
}

// isBlank reports whether an entry has no query, and no key that other cases have in place of one.
func isBlank(e *yaml.Node) bool {
	known := slices.Concat(signKeys, expectKeys, subjectKeys, routeKeys, choiceKeys, reasonKeys, ignoredKeys)
	return e.Kind == yaml.MappingNode && !slices.ContainsFunc(dialect.Pairs(e), func(p decode.Pair) bool {
		return !slices.Contains(known, p.Key.Value) && !(slices.Contains(promptKeys, p.Key.Value) && decode.IsNull(p.Value))
	})
}

// groupsOf returns the groups of a list of maps that name their skills, or of a map of them by skill. Half a pair of
// lists can mean something else, so one group must have both, or a clear key.
func (p *parts) groupsOf(n *yaml.Node, named bool) (groups []group) {
	isSure := false
	add := func(node, skill *yaml.Node) bool {
		g, found, sure := groupOf(node, skill, named)
		if found {
			groups, isSure = append(groups, g), isSure || sure
		}
		return found
	}
	for _, item := range dialect.Items(n) {
		if _, skill := lookup(item, ownerKeys); !decode.IsText(skill) || !add(item, skill) {
			return nil
		}
	}
	for _, pair := range dialect.Pairs(n) {
		if !add(pair.Value, pair.Key) {
			p.unread = append(p.unread, pair)
		}
	}
	if !isSure {
		return nil
	}
	return groups
}

// signed are the lists of a map whose keys are signs.
type signed struct {
	positive, negative []*yaml.Node // their entries
	keys               []string
	hasBoth            bool // lists of both signs
	isClear            bool // a key can mean nothing else
}

// signedIn returns the lists of a map whose keys are signs. Without a name of a trigger set, only the first of listPairs is
// read.
func signedIn(n *yaml.Node, named bool) (s signed) {
	var found [2]bool
	for i, pair := range listPairs {
		if i > 0 && !named {
			break
		}
		for sign, key := range pair {
			list := listIn(n, key)
			if list == nil {
				continue
			}
			found[sign] = true
			s.keys = append(s.keys, key)
			s.isClear = s.isClear || named && (strings.HasPrefix(key, "should_") || strings.HasPrefix(key, "must_"))
			if sign == 0 {
				s.positive = append(s.positive, dialect.Items(list)...)
			} else {
				s.negative = append(s.negative, dialect.Items(list)...)
			}
		}
	}
	s.hasBoth = found[0] && found[1]
	return s
}

// groupOf returns the group of a map. isSure means that it can be nothing else.
func groupOf(n, skill *yaml.Node, named bool) (g group, found, isSure bool) {
	s := signedIn(n, named)
	g = group{node: n, skill: skill, positive: s.positive, negative: s.negative}
	if !named {
		return g, s.hasBoth, s.hasBoth
	}
	_, near := lookup(n, nearKeys)
	g.near = dialect.Items(near)
	return g, len(s.keys) > 0 || len(g.near) > 0, s.hasBoth || s.isClear || len(s.keys) > 0 && len(g.near) > 0
}

func (tr *translator) addGroup(g group) {
	known := slices.Concat(ownerKeys, nearKeys, reasonKeys, ignoredKeys)
	for _, pair := range listPairs {
		known = append(known, pair[0], pair[1])
	}
	tr.warnUnknown(g.node, setOf(known))
	tr.addSigned(g.positive, true, g.skill)
	tr.addSigned(g.negative, false, g.skill)
	for _, e := range g.near {
		tr.addNear(e, g.skill)
	}
}

// addNear adds a near miss of a skill: an entry for which another skill is right, or none.
func (tr *translator) addNear(e, skill *yaml.Node) {
	if key, _ := signOf(e, tr.named); key == "" {
		tr.addSigned([]*yaml.Node{e}, false, skill)
		return
	}
	for _, c := range tr.choicesOf(e, skill) {
		if c.should && c.skill != nil && c.skill.Value != skill.Value {
			c.forbidden = dialect.List(skill, append(dialect.Items(c.forbidden), dialect.Scalar(skill, skill.Value))...)
		}
		tr.add(e, c)
	}
}

// known reports whether a key is one of a trigger set.
func known(key string) bool {
	return slices.Contains(allKeys, key) || slices.ContainsFunc(listPairs, func(p [2]string) bool { return key == p[0] || key == p[1] })
}

var allKeys = slices.Concat(listKeys, promptKeys, signKeys, expectKeys, subjectKeys, routeKeys, choiceKeys, reasonKeys, fileKeys, nearKeys,
	statementKeys, []string{groupsKey})

// normal returns a file with the names of keys that this package knows.
func normal(root *yaml.Node) *yaml.Node { return dialect.SnakeKeys(decode.Follow(root), known) }
