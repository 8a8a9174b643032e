package harbor

import (
	"math"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

func rewardGrader(at *yaml.Node, name string, options dialect.Map) dialect.Map {
	g := dialect.NewMap(at)
	g.Set("name", dialect.Scalar(at, name))
	g.Set("type", dialect.Scalar(at, "reward"))
	g.Set("config", options.Node)
	return g
}

// verifier returns the grader of a step; nil if it has no test.sh.
func (tr *translator) verifier(s *step) *yaml.Node {
	at := lookup(s.node, "verifier")
	options := dialect.NewMap(at)
	tests := dialect.List(at)
	script := false
	for _, dir := range tr.testsOf(s) {
		if tr.exists(dir) {
			tests.Content = append(tests.Content, dialect.Scalar(nil, dir))
			script = script || tr.exists(dir+"/test.sh")
		}
	}
	bundled := s.own != nil && s.own.image != nil // the image contains them
	if !script && !bundled {
		tr.block(s.node, "%s is missing", s.file("tests/test.sh"))
		return nil
	}
	if len(tests.Content) > 0 {
		options.Set("tests", tests)
	}
	if !tr.ofImage {
		options.Set("workdir", dialect.Scalar(nil, tr.workdir))
	}
	options.Set("timeout", dialect.Scalar(lookup(s.node, "verifier", "timeout_sec"), tr.verifierTimeout(s)))
	env := dialect.NewMap(at)
	if s.own != nil && s.own.node != tr.get("environment") {
		for _, p := range dialect.Pairs(lookup(s.own.node, "env")) {
			env.Set(p.Key.Value, dialect.Scalar(p.Value, dialect.TextOf(p.Value)))
		}
	}
	for _, n := range []*yaml.Node{tr.root, s.node} {
		for _, p := range dialect.Pairs(lookup(n, "verifier", "env")) {
			env.Set(p.Key.Value, dialect.Scalar(p.Value, dialect.TextOf(p.Value)))
		}
	}
	if env.Len() > 0 {
		options.Set("env", env.Node)
	}
	options.Set("network", tr.networkOfVerifier(s))
	if s.own != nil {
		tr.setOwn(s, options)
	}
	tr.setCollect(s, options)
	if s.name == "" {
		return rewardGrader(at, "reward", options).Node
	}
	options.Set("pass_rewards", tr.leastRewards(s))
	g := rewardGrader(at, s.name, options)
	g.Set("optional", dialect.Scalar(nil, true))
	return g.Node
}

// networkOfVerifier returns the network of the verifier of a step: its own, that of the task's verifier, or that of
// its environment; nil if it is open.
func (tr *translator) networkOfVerifier(s *step) *yaml.Node {
	for _, n := range []*yaml.Node{s.node, tr.root} {
		if v := lookup(n, "verifier"); hasNetwork(v) {
			return tr.networkOf(v, "verifier")
		}
	}
	if s.own != nil {
		return tr.networkOf(s.own.node, "verifier.environment")
	}
	return tr.networkOf(tr.get("environment"), "environment")
}

// testsOf returns the folders of tests of a step, relative to the task. Those of the step replace those
// of the task.
func (tr *translator) testsOf(s *step) []string {
	if s.own != nil {
		return []string{s.own.tests}
	}
	if s.name == "" {
		return []string{"tests"}
	}
	return []string{"tests", s.file("tests")}
}

// leastRewards returns the least rewards of a step by name; nil if it has none.
func (tr *translator) leastRewards(s *step) *yaml.Node {
	n := decode.Follow(decode.Lookup(s.node, "min_reward"))
	if n == nil {
		return nil
	}
	least := dialect.NewMap(n)
	if n.Kind != yaml.MappingNode {
		least.Set("reward", tr.number(n, "min_reward"))
	}
	for _, p := range dialect.Pairs(n) {
		least.Set(p.Key.Value, tr.number(p.Value, "min_reward."+p.Key.Value))
	}
	return least.Node
}

// number returns a number of a step; nil after a fault.
func (tr *translator) number(n *yaml.Node, key string) *yaml.Node {
	var f float64
	if n == nil || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		tr.fault(n, "%s must be a number, got %s", key, decode.Describe(n))
		return nil
	}
	return dialect.Scalar(n, f)
}

// verifierTimeout returns the limit of the verifier of a step in seconds, agentTimeout that of its
// agent. A step without a limit has that of the task.
func (tr *translator) verifierTimeout(s *step) float64 {
	return tr.seconds(tr.keyOf(s, "verifier", "timeout_sec"), verifierTimeout, "verifier.timeout_sec")
}

func (tr *translator) agentTimeout(s *step) float64 {
	return tr.seconds(tr.keyOf(s, "agent", "timeout_sec"), noAgentTimeout, "agent.timeout_sec")
}

// keyOf returns the value of a key of a step, else that of the task.
func (tr *translator) keyOf(s *step, keys ...string) *yaml.Node {
	if n := lookup(s.node, keys...); n != nil {
		return n
	}
	return tr.get(keys...)
}
