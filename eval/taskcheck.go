package eval

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/text"
)

// taskCheck checks one task after it is decoded. It knows where the task is written, and reports
// findings there. The types that embed it check one part of a task each: [promptCheck],
// [fixtureCheck], [surroundingsCheck] and [textCheck]. [expectedCheck] checks the expectations.
type taskCheck struct {
	loader *loader
	src    *decode.Source
	node   *yaml.Node
	task   *Task
}

func (c *taskCheck) check() {
	t, l := c.task, c.loader
	if strings.ContainsFunc(t.ID, unicode.IsControl) {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("id"), "id must be a single line without control characters")
	}
	for i, name := range t.Cells {
		if !l.suite.Config.Cells.named(name) {
			c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("cells", i), "no cell of config.cells has the name %q", text.Clip(name, 60))
		}
	}
	c.checkCluster()
	if t.Model != "" && strings.TrimSpace(t.Model) == "" {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("model"), "model must name a model, got %q", t.Model)
	}
	if t.Model != "" && l.suite.Kind != ToolEval {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("model"),
			"a suite of the kind %s compares models or their parameters, so a task cannot have a model of its own", l.suite.Kind)
	}
	t.Vars, t.Literal = l.suite.Inputs, l.suite.Literal
	if t.ScoreThreshold == nil {
		t.ScoreThreshold = l.suite.ScoreThreshold
	}
	if t.AgentTimeoutSeconds > 0 && len(t.Inputs.Checkpoints) > 0 {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("agent_timeout_seconds"),
			"agent_timeout_seconds cannot limit an agent with checkpoints, whose graders would use its time; set it at the checkpoints")
	}
	t.ContextDir = c.directory(t.ContextDir, decode.At("context_dir"))
	for i, dir := range t.SkillDirectories {
		t.SkillDirectories[i] = c.directory(dir, decode.At("skill_directories", i))
	}
	fixtures := &fixtureCheck{taskCheck: c}
	promptCheck{c}.check()
	fixtures.check()
	surroundingsCheck{c}.check()
	c.task.MCPMocks = c.loader.loadMocks(c.src, c.node, c.task.MCPMocks)
	c.checkServers()
	c.checkEnvironment()
	c.checkImage()
	solutionCheck{c}.check()
	t.Graders = graderLoader{l}.load(t.Graders, t)
	c.expected().check()
	t.Skills = l.skills.forTask(t, c)
	textCheck{c, fixtures}.check()
}

// maxCluster is the maximum number of characters of the name of a cluster.
const maxCluster = 200

func (c *taskCheck) checkCluster() {
	at := decode.At("cluster")
	switch name := c.task.Cluster; {
	case strings.TrimSpace(name) == "":
		if c.has(at) {
			c.reportf(decode.Error, decode.CodeInvalidValue, at, "cluster must name what the task has in common with others, got %q", name)
		}
	case strings.ContainsFunc(name, unicode.IsControl):
		c.reportf(decode.Error, decode.CodeInvalidValue, at, "cluster must be a single line without control characters")
	case utf8.RuneCountInString(name) > maxCluster:
		c.reportf(decode.Error, decode.CodeInvalidValue, at, "cluster must have at most %d characters, got %d", maxCluster, utf8.RuneCountInString(name))
	}
}

// reportf reports a finding at a place in the task.
func (c *taskCheck) reportf(severity decode.Severity, code decode.Code, p decode.Path, format string, args ...any) {
	c.loader.Reportf(c.src, decode.Place(c.node, p...), severity, code, format, args...)
}

// inputPath returns the path of a key of the inputs, which flat tasks have at their top level.
func (c *taskCheck) inputPath(elems ...any) decode.Path {
	if len(elems) > 0 {
		if key, ok := elems[0].(string); ok && decode.Lookup(decode.Lookup(c.node, "inputs"), key) == nil && decode.Lookup(c.node, key) != nil {
			return elems
		}
	}
	return append(decode.Path{"inputs"}, elems...)
}

// has reports whether a value is written at a place in the task. A key without a value does not
// count, because the author may still be typing it.
func (c *taskCheck) has(p decode.Path) bool {
	n, depth := decode.Walk(c.node, p)
	return depth == len(p) && !decode.IsNull(decode.Follow(n))
}

// promptPath returns the absolute path of the task's prompt_file.
func (c *taskCheck) promptPath() string {
	return filepath.Join(filepath.Dir(c.task.File), filepath.FromSlash(c.task.Inputs.PromptFile))
}

// fixtureDir returns the absolute path of the directory with the task's fixtures: the one of the
// options, else the task's, else fixtures beside the suite. The directory need not exist.
func (c *taskCheck) fixtureDir() string {
	l := c.loader
	switch {
	case l.options.ContextDir != "":
		if abs, err := filepath.Abs(l.options.ContextDir); err == nil {
			return abs
		}
		return l.options.ContextDir
	}
	return l.suite.FixtureDir(c.task.ContextDir)
}

func (c *taskCheck) checkEnvironment() {
	for name, value := range c.task.Inputs.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("environment", name),
				"%q cannot be an environment variable", text.Clip(name, 60))
		}
	}
}
