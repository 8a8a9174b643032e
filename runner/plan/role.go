package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/record"
)

// triggerTest is a prompt of the trigger tests, as a task of the run.
type triggerTest struct {
	task *eval.Task
	ref  *record.TriggerRef
}

// taskIDs contains the ids of a run, each used once.
type taskIDs map[string]bool

func idsOf(suite *eval.Suite) taskIDs {
	ids := make(taskIDs, len(suite.Tasks))
	for _, t := range suite.Tasks {
		ids[t.ID] = true
	}
	return ids
}

// take reserves the id or, if it is taken, a similar one, and returns it.
func (ids taskIDs) take(id string) string {
	free := id
	for n := 2; ids[free]; n++ {
		free = fmt.Sprintf("%s-%d", id, n)
	}
	ids[free] = true
	return free
}

// triggerTests creates tasks from the suite's trigger tests. The first tool call decides them if the
// tests or firstTool say so.
func triggerTests(suite *eval.Suite, ids taskIDs, firstTool bool) []triggerTest {
	tt := suite.Triggers
	if tt == nil {
		return nil
	}
	var tests []triggerTest
	for _, l := range []struct {
		id     string
		should bool
		list   []eval.TriggerPrompt
	}{{"should_trigger", true, tt.ShouldTrigger}, {"should_not_trigger", false, tt.ShouldNotTrigger}} {
		for i, p := range l.list {
			ref := &record.TriggerRef{
				Prompt: p.Prompt, Skill: cmp.Or(p.Skill, tt.Skill), ShouldTrigger: l.should, Reason: p.Reason,
				AcceptableSkills: p.AcceptableSkills, ForbiddenSkills: p.ForbiddenSkills, FirstTool: firstTool || tt.FirstTool,
				Confidence: cmp.Or(p.Confidence, record.ConfidenceHigh),
			}
			tests = append(tests, triggerTest{ref: ref, task: &eval.Task{
				ID: ids.take(fmt.Sprintf("%s#%d", l.id, i+1)), Name: Title(p.Prompt), Enabled: true,
				File: tt.File, RelFile: tt.RelFile, Inputs: eval.Inputs{Prompt: p.Prompt}, Vars: suite.Inputs,
				Skills: tt.Skills, Instructions: tt.Instructions, Mocks: suite.MCPMocks, Literal: suite.Literal,
				PassThreshold: rightShare(tt.Threshold, l.should),
			}})
		}
	}
	return tests
}

// rightShare returns the share of right trials that a prompt needs, from the share of trials that use the
// skill. A prompt that should not trigger must stay below that share; no number of trials has a share
// between the two.
func rightShare(threshold *float64, should bool) *float64 {
	if threshold == nil || should {
		return threshold
	}
	const margin = 1e-7 // a tenth of the least distance of two shares
	share := min(1-*threshold+margin, 1)
	return &share
}

// maxTitle limits the runes of a title.
const maxTitle = 80

// Title returns the first line of a prompt, shortened.
func Title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return text.ClipRunes(strings.TrimSpace(line), maxTitle)
}

// withoutSkills returns the task as an agent without skills receives it and graders grade it.
func withoutSkills(t *eval.Task) *eval.Task {
	b := *t
	b.Skills, b.SkillDirectories = nil, nil
	b.Instructions = slices.DeleteFunc(slices.Clone(t.Instructions), func(f eval.InstructionFile) bool { return f.UnderTest })
	b.Effective = slices.DeleteFunc(slices.Clone(t.Effective), func(g *eval.Grader) bool {
		return grader.IsSkillsOnly(g) || strings.HasSuffix(g.File, skill.AgentSuffix)
	})
	return &b
}

// ungraded returns a copy of the task without graders.
func ungraded(t *eval.Task) *eval.Task {
	u := *t
	u.Graders, u.Effective, u.Expected = nil, nil, nil
	return &u
}

// setups returns the setups of all cells and tasks, each once.
func (p *Plan) setups() []*Setup {
	all := slices.Clone(p.cells)
	for _, t := range p.Tasks {
		if t.Setup.ownModel && !slices.Contains(all, t.Setup) {
			all = append(all, t.Setup)
		}
	}
	return all
}

// everywhere returns the reason why no cell is measured; empty when some cell is.
func (p *Plan) everywhere(unmeasured func(*Setup) string) string {
	for _, c := range p.cells {
		if unmeasured(c) == "" {
			return ""
		}
	}
	return unmeasured(p.cells[0])
}

// unmeasuredBaseline returns the reason why execution without skills measures nothing; empty
// when it does.
func (c *Setup) unmeasuredBaseline() string {
	if c.Can().Canned {
		return fmt.Sprintf("not measured: executor %s makes its replies up", c.Executor.Name)
	}
	return ""
}

// unmeasuredTriggers returns the reason why trigger tests measure nothing; empty when they do.
func (c *Setup) unmeasuredTriggers() string {
	switch caps := c.Can(); {
	case caps.Canned:
		return fmt.Sprintf("not measured: executor %s makes its replies up", c.Executor.Name)
	case caps.Simulated:
		return fmt.Sprintf("not measured: executor %s follows a script of the suite", c.Executor.Name)
	case !caps.Skills:
		return fmt.Sprintf("not measured: executor %s does not report which skills are invoked", c.Executor.Name)
	}
	return ""
}
