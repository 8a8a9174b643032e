package eval

import (
	"regexp"

	"gopkg.in/yaml.v3"
)

var durationText = regexp.MustCompile(`^\d+(\.\d+)?(ms|s|m|h)$`)

// otherDialect looks for the marks of other tools that call their files
// eval.yaml too. It returns the tool's name and the node that gives it away, or "".
func otherDialect(root *yaml.Node) (tool string, at *yaml.Node) {
	if k, _ := lookupPair(root, "stimuli"); k != nil {
		return "Vally", k
	}
	for _, in := range []*yaml.Node{root, lookup(root, "config"), lookup(root, "defaults")} {
		if t := lookup(in, "timeout"); isText(follow(t)) && durationText.MatchString(follow(t).Value) {
			if lookup(lookup(root, "defaults"), "agent") == nil {
				return "Vally", t
			}
		}
	}
	agent, _ := lookupPair(lookup(root, "defaults"), "agent")
	if agent == nil {
		return "", nil
	}
	if lookup(root, "instruction") != nil {
		return "skillgrade", agent
	}
	for _, list := range []string{"tasks", "evals", "tests"} {
		if items := follow(lookup(root, list)); items != nil && items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				if lookup(item, "instruction") != nil {
					return "skillgrade", agent
				}
			}
		}
	}
	return "", nil
}
