package dotnet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// The defaults of skill-validator: runs of a scenario, scenarios at once and runs at once, and seconds for
// the agent and for its judge.
const (
	defaultRuns     = 5
	defaultParallel = 3
	defaultTimeout  = 120
	judgeTimeout    = 300
)

// translator translates one file.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	dir     string // of the file
	suite   dialect.Map
	config  dialect.Map
	skill   string // directory of the skill under test; empty without one
	ids     map[string]int
	unknown map[string]bool // keys that were reported
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: decode.Follow(t.Source.Root), dir: filepath.Dir(t.Source.Path),
		ids: map[string]int{}, unknown: map[string]bool{},
	}
	tr.suite, tr.config = dialect.NewMap(tr.root), dialect.NewMap(tr.root)
	t.Suite = tr.suite.Node
	tr.addSubject()
	tr.suite.Set("literal", dialect.Scalar(nil, true))
	if t.HeadOnly {
		return
	}
	tr.addConfig()
	tr.warnUnknown(tr.root, "config", "scenarios")
	scenarios := decode.Follow(decode.Lookup(tr.root, "scenarios"))
	tasks := dialect.List(scenarios)
	for _, n := range tr.list(tr.root, "scenarios") {
		if n == nil || n.Kind != yaml.MappingNode {
			tr.fault(n, "a scenario must be a map with name and prompt, got %s", decode.Describe(n))
			continue
		}
		tasks.Content = append(tasks.Content, tr.task(n))
	}
	tr.suite.Set("tasks", tasks)
}

func (tr *translator) fault(at *yaml.Node, format string, args ...any) {
	tr.Reportf(tr.Source, at, decode.Error, decode.CodeInvalidValue, format, args...)
}

// list returns the items of a list; nil if it is absent or something else, which it reports.
func (tr *translator) list(in *yaml.Node, key string) []*yaml.Node {
	n := decode.Follow(decode.Lookup(in, key))
	items, ok := dialect.ListOf(n)
	if !ok {
		tr.fault(n, "%s must be a list, got %s", key, decode.Describe(n))
	}
	return items
}

// isMap reports whether a node is a map. If it is something else and present, it reports that.
func (tr *translator) isMap(n *yaml.Node, key string) bool {
	if n == nil || decode.IsNull(n) {
		return false
	}
	if n.Kind != yaml.MappingNode {
		tr.fault(n, "%s must be a map, got %s", key, decode.Describe(n))
	}
	return n.Kind == yaml.MappingNode
}

// warnUnknown reports keys of a map that have no effect, each once in the file.
func (tr *translator) warnUnknown(n *yaml.Node, known ...string) {
	for _, p := range dialect.Pairs(n) {
		if key := p.Key.Value; !slices.Contains(known, key) && !tr.unknown[key] {
			tr.unknown[key] = true
			tr.Reportf(tr.Source, p.Key, decode.Warning, decode.CodeUnknownKey,
				"key %q is unknown in suites of skill-validator and has no effect", text.Clip(key, 60))
		}
	}
}

// addConfig sets the settings of the run.
func (tr *translator) addConfig() {
	tr.config.Set("trials_per_task", dialect.Scalar(nil, defaultRuns))
	given := decode.Follow(decode.Lookup(tr.root, "config"))
	tr.isMap(given, "config")
	tr.warnUnknown(given, "max_parallel_scenarios", "max_parallel_runs")
	workers := 1
	for _, key := range []string{"max_parallel_scenarios", "max_parallel_runs"} {
		if most := tr.positive(given, key); most > 0 {
			workers *= most
		} else {
			workers *= defaultParallel
		}
	}
	if given != nil && workers > 1 {
		tr.config.Set("parallel", dialect.Scalar(given, true))
		tr.config.Set("workers", dialect.Scalar(given, workers))
	}
	tr.suite.Set("config", tr.config.Node)
}

// maxNumber limits the numbers of a suite, such as seconds.
const maxNumber = 100_000

// positive returns the value of a key, a whole number above 0; 0 if it is absent or something else,
// which it reports.
func (tr *translator) positive(in *yaml.Node, key string) int {
	n := decode.Follow(decode.Lookup(in, key))
	if n == nil || decode.IsNull(n) {
		return 0
	}
	var value int
	if n.Decode(&value) != nil || value <= 0 || value > maxNumber {
		tr.fault(n, "%s must be a whole number above 0, got %s", key, decode.Describe(n))
		return 0
	}
	return value
}

// scenario is a scenario on its way to a task.
type scenario struct {
	*translator
	node    *yaml.Node
	task    dialect.Map
	inputs  dialect.Map
	graders *yaml.Node
	names   map[string]int // of graders
	blocked []string       // reasons why nobody can do the scenario
}

// task returns the task of a scenario.
func (tr *translator) task(n *yaml.Node) *yaml.Node {
	s := &scenario{translator: tr, node: n, task: dialect.NewMap(n), inputs: dialect.NewMap(n), graders: dialect.List(n), names: map[string]int{}}
	tr.warnUnknown(n, "name", "prompt", "setup", "assertions", "rubric", "timeout", "expect_tools", "reject_tools",
		"max_turns", "max_tokens", "expect_activation")
	s.addID()
	prompt := s.get("prompt")
	if strings.TrimSpace(dialect.TextOf(prompt)) == "" {
		tr.fault(n, "a scenario needs a prompt")
	}
	s.inputs.Set("prompt", dialect.Scalar(prompt, dialect.TextOf(prompt)))
	s.addSetup()
	s.addAssertions()
	s.addConstraints()
	s.addRubric()
	s.addTimeout()
	s.addActivation()
	s.task.Set("inputs", s.inputs.Node)
	if len(s.graders.Content) > 0 {
		s.task.Set("graders", s.graders)
	}
	if len(s.blocked) > 0 {
		s.task.Set("blocked", dialect.Scalar(n, strings.Join(s.blocked, "; ")))
	}
	return s.task.Node
}

// get returns the value of a key of the scenario; nil if it is absent or null.
func (s *scenario) get(key string) *yaml.Node {
	if n := decode.Follow(decode.Lookup(s.node, key)); n != nil && !decode.IsNull(n) {
		return n
	}
	return nil
}

// block reports why nobody can do the scenario. Its trials end in an error.
func (s *scenario) block(at *yaml.Node, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	s.blocked = append(s.blocked, reason)
	s.Reportf(s.Source, at, decode.Warning, decode.CodeUnavailable, "%s; trials of this scenario end in an error", reason)
}

// addID makes the name the id. A repeated name gets a number.
func (s *scenario) addID() {
	at := s.get("name")
	name := dialect.TextOf(at)
	if strings.TrimSpace(name) == "" {
		s.fault(s.node, "a scenario needs a name")
	}
	id := name
	for s.ids[id] > 0 {
		s.ids[name]++
		id = fmt.Sprintf("%s-%d", name, s.ids[name])
	}
	if id != name {
		s.Reportf(s.Source, at, decode.Warning, decode.CodeDuplicateID, "two scenarios have the name %q; this one becomes %q",
			text.Clip(name, 60), text.Clip(id, 70))
	}
	s.ids[id] = 1
	s.task.Set("id", dialect.Scalar(at, id))
}

// addTimeout sets the time limit. It is that of the agent; the judge has a time of its own.
func (s *scenario) addTimeout() {
	at, seconds := s.get("timeout"), s.positive(s.node, "timeout")
	if seconds == 0 {
		seconds = defaultTimeout
	}
	if s.names[rubricName] == 0 {
		s.task.Set("timeout_seconds", dialect.Scalar(at, seconds))
		return
	}
	s.task.Set("timeout_seconds", dialect.Scalar(at, seconds+judgeTimeout))
	options := dialect.NewMap(at)
	options.Set("max_duration_ms", dialect.Scalar(at, seconds*1000))
	limit := dialect.NewMap(at)
	limit.Set("name", dialect.Scalar(at, "timeout"))
	limit.Set("type", dialect.Scalar(at, "behavior"))
	limit.Set("config", options.Node)
	s.inputs.Set("checkpoints", dialect.List(at, dialect.Checkpoint(at, 1, limit.Node)))
}

// addActivation sets whether the agent may use the skill. A scenario without the key says nothing about
// single trials.
func (s *scenario) addActivation() {
	n := s.get("expect_activation")
	if n == nil {
		return
	}
	should, ok := decode.BoolOf(n)
	if !ok {
		s.fault(n, "expect_activation must be true or false, got %s", decode.Describe(n))
		return
	}
	if s.suite.Get("skill") == nil {
		s.block(n, "expect_activation needs a skill, and this suite is about an agent")
		return
	}
	expected := dialect.NewMap(n)
	expected.Set("should_trigger", dialect.Scalar(n, should))
	s.task.Set("expected", expected.Node)
}
