package discover

import (
	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// OtherTool looks for the marks of other tools that also call their files eval.yaml. It returns
// the tool's name, or "", and the node that identifies it.
func OtherTool(root *yaml.Node) (tool string, at *yaml.Node) {
	agent, _ := decode.LookupPair(decode.Lookup(root, "defaults"), "agent")
	if agent == nil {
		return "", nil
	}
	if decode.Lookup(root, "instruction") != nil {
		return "skillgrade", agent
	}
	for _, list := range []string{"tasks", "evals", "tests"} {
		if items := decode.Follow(decode.Lookup(root, list)); items != nil && items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				if decode.Lookup(item, "instruction") != nil {
					return "skillgrade", agent
				}
			}
		}
	}
	return "", nil
}
