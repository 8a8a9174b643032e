package dialecttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/dialect"
)

// Keys that a description shows in a form of their own.
var (
	shownOfSuites = []string{"name", "skill", "literal", "graders", "tasks", "trigger_tests"}
	shownOfTasks  = []string{"id", "name", "blocked", "graders", "inputs"}
	shownOfInputs = []string{"prompt", "follow_up_prompts", "files"}
)

// Describe returns what a suite contains: its head, its tasks with their effective graders, and its
// trigger tests. Other keys of the suite and its tasks follow as JSON.
func Describe(t *testing.T, s *eval.Suite) string {
	t.Helper()
	root, err := s.Node()
	require.NoError(t, err)
	d := &description{T: t}
	d.addf("suite %s, skill %q\n", s.Name, s.Skill)
	d.addOthers(root, shownOfSuites)
	declared := map[string][]*yaml.Node{} // tasks of different cells can have the same id
	for _, n := range dialect.Items(decode.Lookup(root, "tasks")) {
		id := dialect.TextOf(decode.Lookup(n, "id"))
		declared[id] = append(declared[id], n)
	}
	for _, task := range s.Tasks {
		var n *yaml.Node
		if same := declared[task.ID]; len(same) > 0 {
			n, declared[task.ID] = same[0], same[1:]
		}
		d.addTask(task, n)
	}
	d.addTriggers(s.Triggers)
	return d.String()
}

type description struct {
	*testing.T
	strings.Builder
}

func (d *description) addf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *description) json(v any) string {
	data, err := json.Marshal(v)
	require.NoError(d, err)
	return string(data)
}

// addOthers adds the keys of a map that are not shown.
func (d *description) addOthers(n *yaml.Node, shown []string) {
	for _, p := range dialect.Pairs(n) {
		if slices.Contains(shown, p.Key.Value) {
			continue
		}
		var v any
		require.NoError(d, p.Value.Decode(&v))
		d.addf("  %s: %s\n", p.Key.Value, d.json(v))
	}
}

func (d *description) addTask(task *eval.Task, declared *yaml.Node) {
	d.addf("task %s: %q", task.ID, append([]string{task.Inputs.Prompt}, task.Inputs.FollowUpPrompts...))
	if task.Name != task.ID {
		d.addf(" named %s", task.Name)
	}
	d.addf("\n")
	d.addOthers(declared, shownOfTasks)
	d.addOthers(decode.Lookup(declared, "inputs"), shownOfInputs)
	for _, f := range task.Inputs.Files {
		from := f.From
		if f.Content != nil {
			from = fmt.Sprintf("%q", *f.Content)
		}
		d.addf("  file %s: %s\n", f.Path, from)
	}
	for _, g := range task.Effective {
		d.addf("  %s %s, weight %v: %s\n", g.Type, g.Name, g.Weight, d.json(g.Config))
	}
	if task.Blocked != "" {
		d.addf("  blocked: %s\n", task.Blocked)
	}
}

func (d *description) addTriggers(tests *eval.TriggerTests) {
	if tests == nil {
		return
	}
	if tests.Threshold != nil {
		d.addf("trigger threshold %v\n", *tests.Threshold)
	}
	if tests.FirstTool {
		d.addf("the first tool decides\n")
	}
	for _, p := range tests.ShouldTrigger {
		d.addf("triggers: %s\n", describePrompt(p))
	}
	for _, p := range tests.ShouldNotTrigger {
		d.addf("does not trigger: %s\n", describePrompt(p))
	}
}

func describePrompt(p eval.TriggerPrompt) string {
	text := p.Prompt
	if p.Skill != "" {
		text += ", skill " + p.Skill
	}
	for _, l := range []struct {
		label string
		names []string
	}{{"acceptable", p.AcceptableSkills}, {"forbidden", p.ForbiddenSkills}} {
		if len(l.names) > 0 {
			text += fmt.Sprintf(", %s %s", l.label, strings.Join(l.names, " "))
		}
	}
	if p.Reason != "" {
		text += fmt.Sprintf(" (%s)", p.Reason)
	}
	return text
}
