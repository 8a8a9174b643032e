package skillevals

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// thresholdKeys are keys of files whose cases have points.
var thresholdKeys = []string{"pass_threshold", "maximum_per_case"}

// needed is what a case needs to pass, in a file with pass_threshold. The zero value means that all
// checks must pass.
type needed struct {
	at     *yaml.Node // nil without pass_threshold
	amount float64
	points bool // the amount is a number of points, not a share of them
}

// neededOf reads pass_threshold: a number of points if the file has maximum_per_case, else a share from
// 0 to 1.
func (tr *translator) neededOf() (n needed) {
	at := decode.Place(tr.root, "pass_threshold")
	amount, ok := numberOf(decode.Lookup(tr.root, "pass_threshold"))
	if !ok {
		return needed{}
	}
	most, points := numberOf(decode.Lookup(tr.root, "maximum_per_case"))
	if !points {
		most = 1
	}
	if amount < 0 || amount > most {
		tr.Reportf(tr.Source, at, decode.Error, decode.CodeInvalidValue,
			"pass_threshold must be a share of the points from 0 to 1, or a number of points up to maximum_per_case")
		return needed{}
	}
	return needed{at: at, amount: amount, points: points}
}

// addThreshold sets the score that the case needs.
func (c *caseTranslator) addThreshold(graders []*yaml.Node) {
	if c.needed.at == nil || len(graders) == 0 {
		return
	}
	share := c.needed.amount
	if c.needed.points {
		all := 0.0
		for _, g := range graders {
			all += weightOf(g)
		}
		if share /= all; share > 1 {
			c.blocked = append(c.blocked, fmt.Sprintf("its checks give %v points together, and pass_threshold asks for %v", all, c.needed.amount))
			return
		}
	}
	c.task.Set("score_threshold", dialect.Scalar(c.needed.at, share))
}

func weightOf(grader *yaml.Node) float64 {
	if weight, ok := numberOf(decode.Lookup(grader, "weight")); ok {
		return weight
	}
	return 1
}

// groups translates a check of groups of patterns with points: each group needs a match of one of its
// patterns, and no pattern of forbidden may match. One pattern looks for all of them, because a check
// gives either all of its points or none. The result is nil if a group has no pattern, because the check
// would always pass.
func groups(item, spec *yaml.Node, name string) *yaml.Node {
	var all strings.Builder
	for _, group := range dialect.Items(decode.Lookup(spec, "groups")) {
		list := group
		if group.Kind == yaml.ScalarNode {
			list = dialect.List(group, group)
		}
		pattern := dialect.Items(oneOf(group, list, false))
		if len(pattern) == 0 {
			return nil
		}
		fmt.Fprintf(&all, `(?=[^]*(?:%s))`, pattern[0].Value)
	}
	if all.Len() == 0 {
		return nil
	}
	for _, f := range dialect.Items(decode.Lookup(spec, "forbidden")) {
		fmt.Fprintf(&all, `(?![^]*(?:%s))`, dialect.TextOf(f))
	}
	config := dialect.NewMap(spec)
	config.Set("regex_match", dialect.List(spec, dialect.Scalar(spec, "^"+all.String())))
	config.Set("syntax", dialect.Scalar(spec, "javascript"))
	g := dialect.Map{Node: named(item, name, "text", config)}
	if points, ok := numberOf(decode.Lookup(item, "points")); ok && points > 0 {
		g.Set("weight", dialect.Scalar(item, points))
	}
	return g.Node
}
