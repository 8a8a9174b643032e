package vally

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// addConstraints translates the constraints of the stimulus and the files of its graders. They become a
// checkpoint after the last turn: constraints have no part in the score, and a trial that exceeds one fails;
// the agent must not see the files.
func (s *stimulus) addConstraints() {
	n := s.get("constraints")
	if n != nil && n.Kind != yaml.MappingNode {
		s.block(n, decode.CodeWrongType, "constraints must be a map, got %s", describe(n))
		return
	}
	limits, graders := dialect.NewMap(n), dialect.List(n)
	least := time.Duration(math.MaxInt64)
	for _, p := range dialect.Pairs(n) {
		switch key := p.Key.Value; key {
		case "max_turns":
			limits.Set("max_iterations", p.Value)
		case "max_tokens":
			limits.Set("max_tokens", p.Value)
		case "max_duration", "max_agent_duration":
			d, err := durationOf(p.Value)
			if err != nil {
				s.block(p.Value, decode.CodeInvalidValue, "%s %v", key, err)
				continue
			}
			if d < least { // both count the time of the agent
				least = d
				limits.Set("max_duration_ms", milliseconds(p.Value, d))
			}
		case "expect_skills":
			if skills := s.expected(key, p.Value); len(skills.Content) > 0 {
				config := dialect.NewMap(p.Value)
				config.Set("required_skills", skills)
				config.Set("mode", dialect.Scalar(p.Value, "any_order"))
				graders.Content = append(graders.Content, named(p.Value, "expect_skills", "skill_invocation", config))
			}
		case "expect_tools":
			if tools := s.expected(key, p.Value); len(tools.Content) > 0 {
				rules := dialect.List(p.Value)
				for _, tool := range tools.Content {
					rule := dialect.NewMap(tool)
					rule.Set("tool", dialect.Scalar(tool, "^"+regexp.QuoteMeta(tool.Value)+"$"))
					rules.Content = append(rules.Content, rule.Node)
				}
				config := dialect.NewMap(p.Value)
				config.Set("expect_tools", rules)
				graders.Content = append(graders.Content, named(p.Value, key, "tool_constraint", config))
			}
		default:
			s.block(p.Key, decode.CodeUnknownKey, "waza does not know the constraint %q", text.Clip(key, 60))
		}
	}
	if limits.Len() > 0 {
		s.warnOnce("constraints", n, decode.CodeOtherMeaning, "a trial that exceeds its constraints fails; waza does not stop the agent")
		graders.Content = append(graders.Content, named(n, "constraints", "behavior", limits))
	}
	files := s.gradingFiles()
	if len(graders.Content)+len(files.Content) == 0 {
		return
	}
	turns := 1 + len(dialect.Items(s.inputs.Get("follow_up_prompts")))
	checkpoint := dialect.Map{Node: dialect.Checkpoint(n, turns, graders.Content...)}
	setList(checkpoint, "files", files)
	s.inputs.Set("checkpoints", dialect.List(n, checkpoint.Node))
}

// gradingFiles returns the files that only the graders of the stimulus see, which are its own or those of the
// suite.
func (s *stimulus) gradingFiles() *yaml.Node {
	files := dialect.List(s.node)
	for _, n := range []*yaml.Node{decode.Follow(decode.Lookup(s.root, "grading_environment")), s.get("grading_environment")} {
		if n == nil || decode.IsNull(n) {
			continue
		}
		if n.Kind != yaml.MappingNode {
			s.block(n, decode.CodeWrongType, "grading_environment must be a map with files, got %s", describe(n))
			continue
		}
		o := origin{node: n, dir: filepath.Dir(s.Source.Path)}
		s.onlyKeys(o, n, "grading_environment", "files", "description")
		for _, f := range s.listIn(o, "files") {
			files.Content = append(files.Content, s.files(o, f)...)
		}
	}
	return files
}

// expected returns the names of a constraint, a list of texts or one text.
func (s *stimulus) expected(key string, n *yaml.Node) *yaml.Node {
	items, list := dialect.Items(n), dialect.List(n)
	if n.Kind == yaml.ScalarNode && !decode.IsNull(n) {
		items = []*yaml.Node{n}
	}
	if n.Kind == yaml.MappingNode {
		s.block(n, decode.CodeWrongType, "%s must be a list of names, got %s", key, describe(n))
	}
	for _, item := range items {
		if dialect.TextOf(item) == "" {
			s.block(item, decode.CodeWrongType, "%s must be a list of names, got %s in it", key, describe(item))
			continue
		}
		with := item
		if name := parameterIn(with); name != "" {
			s.block(item, decode.CodeUnavailable, "%s %s", key, needsParameter(name))
			continue
		}
		list.Content = append(list.Content, dialect.Scalar(item, with.Value))
	}
	return list
}

// named returns a grader.
func named(at *yaml.Node, name, kind string, config dialect.Map) *yaml.Node {
	g := dialect.NewMap(at)
	g.Set("name", dialect.Scalar(at, name))
	g.Set("type", dialect.Scalar(at, kind))
	if config.Len() > 0 {
		g.Set("config", config.Node)
	}
	return g.Node
}

// addSettings translates the run settings of the stimulus, which override those of the suite.
func (s *stimulus) addSettings() {
	s.modelNode = s.settings.get("model")
	s.executorNode, s.executor = s.executorOf(s.settings.get("executor"))
	s.model = dialect.TextOf(s.modelNode)
	s.addTaskSettings()
	s.addOwnSettings()
}

// addOwnSettings translates the settings that the stimulus has of its own.
func (s *stimulus) addOwnSettings() {
	n := s.get("config")
	if n != nil && n.Kind != yaml.MappingNode {
		s.block(n, decode.CodeWrongType, "config must be a map, got %s", describe(n))
		return
	}
	runs := s.get("runs")
	for _, p := range dialect.Pairs(n) {
		if p.Value == nil || decode.IsNull(p.Value) {
			continue
		}
		switch key := p.Key.Value; key {
		case "runs":
			if runs == nil {
				runs = p.Value
			}
		case "timeout":
			d, err := durationOf(p.Value)
			if err != nil {
				s.block(p.Value, decode.CodeInvalidValue, "timeout %v", err)
				continue
			}
			s.task.Set("timeout_seconds", dialect.Scalar(p.Value, d.Seconds()))
		case "judge_model", "judge_reasoning_effort": // graders use them
		case "model":
			if dialect.TextOf(p.Value) == "" {
				s.block(p.Value, decode.CodeWrongType, "model must be a text, got %s", describe(p.Value))
				continue
			}
			s.task.Set("model", dialect.Scalar(p.Value, p.Value.Value))
		case "executor":
			if same := s.settings.get(key); dialect.TextOf(same) != "" && dialect.TextOf(same) == dialect.TextOf(p.Value) {
				continue
			}
			if id := dialect.TextOf(p.Value); slices.Contains(executors, id) {
				s.executorNode, s.executor = p.Value, id
			} else {
				s.block(p.Value, decode.CodeUnavailable, "waza does not have Vally's executor %q, which this stimulus alone has", text.Clip(id, 60))
			}
		default:
			s.block(p.Key, decode.CodeUnknownKey, "waza does not know the setting %q of a stimulus", text.Clip(key, 60))
		}
	}
	if runs == nil {
		return
	}
	if runs.Value == "0" {
		s.block(runs, decode.CodeUnavailable, "runs: 0 only checks the stimulus")
		return
	}
	s.task.Set("trials", runs)
}
