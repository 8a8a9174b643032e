package triggers

import (
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// A group is the part of a file that is about one skill: a list for each sign, and near misses that say which skill
// is right in place of it.
type group struct {
	skill                    *yaml.Node // its name
	node                     *yaml.Node
	positive, negative, near *yaml.Node // lists; nil for none
}

// Keys of a group.
var (
	groupsKey = "skills"
	nearKeys  = []string{"near", "near_misses"}
	ownerKeys = []string{"skill", "skill_name", "name"}
)

// groupsOf returns the groups of a file that has one per skill: a list of maps that name their skills, or a map of
// them by skill. The list or the map is the whole file, or the key skills of it.
func groupsOf(root *yaml.Node, named bool) (groups []group) {
	n := root
	if skills := decode.Follow(decode.Lookup(root, groupsKey)); skills != nil && skills.Kind != yaml.ScalarNode {
		n = skills
	}
	for _, item := range dialect.Items(n) {
		_, skill := lookup(item, ownerKeys)
		g, ok := groupOf(item, skill, named)
		if !ok || !decode.IsText(skill) {
			return nil
		}
		groups = append(groups, g)
	}
	for _, p := range dialect.Pairs(n) {
		if g, ok := groupOf(p.Value, p.Key, named); ok {
			groups = append(groups, g)
		}
	}
	return groups
}

func groupOf(n, skill *yaml.Node, named bool) (g group, ok bool) {
	g = group{node: n, skill: skill}
	for i, pair := range listPairs {
		positive, negative := listIn(n, pair[0]), listIn(n, pair[1])
		if i == 0 && positive != nil && negative != nil || named && (positive != nil || negative != nil) {
			g.positive, g.negative = positive, negative
			break
		}
	}
	if named {
		_, near := lookup(n, nearKeys)
		if near != nil && near.Kind == yaml.SequenceNode {
			g.near = near
		}
	}
	return g, g.positive != nil || g.negative != nil || g.near != nil
}

func (tr *translator) addGroup(g group) {
	known := slices.Concat(ownerKeys, nearKeys, reasonKeys, ignoredKeys)
	for _, pair := range listPairs {
		known = append(known, pair[0], pair[1])
	}
	tr.warnUnknown(g.node, known)
	tr.addSigned(g.positive, true, g.skill)
	tr.addSigned(g.negative, false, g.skill)
	for _, e := range dialect.Items(g.near) {
		tr.addNear(e, g.skill)
	}
}

// addNear adds a near miss of a skill: an entry for which another skill is right, or none.
func (tr *translator) addNear(e, skill *yaml.Node) {
	if key, _ := signOf(e, tr.named); key == "" {
		tr.addSigned(dialect.List(e, e), false, skill)
		return
	}
	for _, c := range tr.choicesOf(e) {
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
