package vally

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// scoring is the rule by which a trial passes.
type scoring struct {
	weights   map[string]*yaml.Node // by the types of graders
	threshold bool                  // the score decides, instead of every grader
}

// readScoring sets the least score of the suite. Without one, every grader must pass.
func (tr *translator) readScoring() scoring {
	s := scoring{weights: map[string]*yaml.Node{}}
	n := decode.Follow(decode.Lookup(tr.root, "scoring"))
	if n != nil && n.Kind != yaml.MappingNode && !decode.IsNull(n) {
		tr.fault(n, "scoring must be a map with weights and threshold, got %s", describe(n))
	}
	for _, p := range dialect.Pairs(n) {
		switch key := p.Key.Value; key {
		case "threshold":
			if p.Value != nil && !decode.IsNull(p.Value) {
				s.threshold = true
				tr.suite.Set("score_threshold", p.Value)
			}
		case "weights":
			if p.Value != nil && p.Value.Kind != yaml.MappingNode && !decode.IsNull(p.Value) {
				tr.fault(p.Value, "weights must be a map of types of graders and numbers, got %s", describe(p.Value))
			}
			for _, w := range dialect.Pairs(p.Value) {
				if weight, ok := decode.FloatOf(w.Value); !ok || weight < 0 {
					tr.fault(w.Value, "the weight of %s must be a number from 0 on, got %s", text.Clip(w.Key.Value, 60), describe(w.Value))
					continue
				}
				s.weights[w.Key.Value] = w.Value
			}
		default:
			tr.fault(p.Key, "unknown key %q in scoring; its keys are weights and threshold", text.Clip(key, 60))
		}
	}
	return s
}

// warnUnusedWeights reports weights of types that no grader of the file has.
func (tr *translator) warnUnusedWeights() {
	for _, w := range dialect.Pairs(decode.Follow(decode.Lookup(decode.Follow(decode.Lookup(tr.root, "scoring")), "weights"))) {
		if kind := w.Key.Value; !tr.types[kind] {
			tr.warnOnce("weight of "+kind, w.Key, decode.CodeNoEffect, "no grader has the type %q, so its weight has no effect", text.Clip(kind, 60))
		}
	}
}

// weigh sets the weight of a grader: its own, else that of its type. A grader with the weight 0 counts only
// where every grader must pass.
func (tr *translator) weigh(g dialect.Map, kind string, own *yaml.Node) {
	n := tr.scoring.weights[kind]
	if own != nil && !decode.IsNull(own) {
		if weight, ok := decode.FloatOf(own); !ok || weight < 0 {
			tr.fault(own, "the weight of a grader must be a number from 0 on, got %s", describe(own))
			return
		}
		n = own
	}
	if n == nil {
		return
	}
	switch weight, _ := decode.FloatOf(n); {
	case weight > 0:
		g.Set("weight", n)
	case tr.scoring.threshold:
		g.Set("optional", dialect.Scalar(n, true))
	default:
		tr.warnOnce("weight of "+kind, n, decode.CodeOtherMeaning, "every grader must pass, so waza counts the weight 0 of %s as 1 in the score", text.Clip(kind, 60))
	}
}
