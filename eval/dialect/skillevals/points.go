package skillevals

import (
	"fmt"
	"math"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// thresholdKeys are keys of files whose cases have points.
var thresholdKeys = []string{"pass_threshold", "maximum_per_case", "max_output_words"}

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

// wordsOf reads max_output_words: the most words of an answer; nil without a limit.
func (tr *translator) wordsOf() *yaml.Node {
	n := decode.Follow(decode.Lookup(tr.root, "max_output_words"))
	if n == nil || decode.IsNull(n) {
		return nil
	}
	words, ok := numberOf(n)
	if !ok || words < 1 || words > math.MaxInt32 || words != math.Trunc(words) {
		tr.Reportf(tr.Source, n, decode.Error, decode.CodeInvalidValue, "max_output_words must be a whole number from 1 on, got %s", decode.Describe(n))
		return nil
	}
	return dialect.Scalar(n, int(words))
}

// addWordLimit limits the words of the answer. The limit has no part in the points, but the case fails beyond it.
func (c *caseTranslator) addWordLimit() {
	if c.words == nil {
		return
	}
	config := dialect.NewMap(c.words)
	config.Set("max_words", c.words)
	turns := 1 + len(dialect.Items(c.inputs.Get("follow_up_prompts")))
	c.inputs.Set("checkpoints", dialect.List(c.words, dialect.Checkpoint(c.words, turns, named(c.words, "max_output_words", "text", config))))
}

// hasGroups reports whether a check has groups of patterns, or points for the absence of patterns.
func hasGroups(item, spec *yaml.Node) bool {
	return decode.Lookup(spec, "groups") != nil || decode.Lookup(spec, "forbidden") != nil && decode.Lookup(item, "points") != nil
}

// groups translates a check of groups of patterns with points: each group needs a match of one of its
// patterns, and no pattern of forbidden may match, in any letter case. One pattern looks for all of them, because
// a check gives either all of its points or none. The result is nil if a group has no pattern, or if the check has
// neither groups nor forbidden patterns, because it would always pass.
func groups(item, spec *yaml.Node, name string) *yaml.Node {
	var all strings.Builder
	for _, group := range dialect.Items(decode.Lookup(spec, "groups")) {
		list := dialect.Items(group)
		if group.Kind == yaml.ScalarNode {
			list = []*yaml.Node{group}
		}
		if len(list) == 0 {
			return nil
		}
		fmt.Fprintf(&all, `(?=[^]*(?:%s))`, anyOf(list))
	}
	if forbidden := dialect.Items(decode.Lookup(spec, "forbidden")); len(forbidden) > 0 {
		fmt.Fprintf(&all, `(?![^]*(?:%s))`, anyOf(forbidden))
	}
	if all.Len() == 0 {
		return nil
	}
	config := dialect.NewMap(spec)
	config.Set("regex_match", dialect.List(spec, dialect.Scalar(spec, "(?i)^"+all.String())))
	config.Set("syntax", dialect.Scalar(spec, "javascript"))
	g := dialect.Map{Node: named(item, name, "text", config)}
	if points, ok := numberOf(decode.Lookup(item, "points")); ok && points > 0 {
		g.Set("weight", dialect.Scalar(item, points))
	}
	return g.Node
}

// anyOf returns a pattern that matches what one of several matches. All ignore the letter case.
func anyOf(patterns []*yaml.Node) string {
	var parts []string
	for _, p := range patterns {
		parts = append(parts, "(?:"+strings.TrimPrefix(dialect.TextOf(p), "(?i)")+")")
	}
	return strings.Join(parts, "|")
}
