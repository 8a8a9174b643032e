package discover

import (
	"waza/eval/decode"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

var durationText = text.Pattern(`^\d+(\.\d+)?(ms|s|m|h)$`)

// OtherTool looks for the marks of other tools that also call their files eval.yaml. It returns
// the tool's name, or "", and the node that identifies it.
func OtherTool(root *yaml.Node) (tool string, at *yaml.Node) {
	if k, _ := decode.LookupPair(root, "stimuli"); k != nil {
		return "Vally", k
	}
	for _, in := range []*yaml.Node{root, decode.Lookup(root, "config"), decode.Lookup(root, "defaults")} {
		if t := decode.Lookup(in, "timeout"); decode.IsText(decode.Follow(t)) && durationText().MatchString(decode.Follow(t).Value) {
			if decode.Lookup(decode.Lookup(root, "defaults"), "agent") == nil {
				return "Vally", t
			}
		}
	}
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
