package eval

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// taskCheck looks at one task after it is decoded.
type taskCheck struct {
	loader *loader
	src    *decode.Source
	node   *yaml.Node
	task   *Task
	bytes  int64 // of the fixtures so far
}

func (c *taskCheck) check() {
	t, l := c.task, c.loader
	if strings.ContainsFunc(t.ID, unicode.IsControl) {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("id"), "an id must stand on one line")
	}
	t.Vars = l.suite.Inputs
	t.ContextDir = c.directory(t.ContextDir)
	for i, dir := range t.SkillDirectories {
		t.SkillDirectories[i] = c.directory(dir)
	}
	c.prompt()
	c.remote()
	c.files()
	c.environment()
	t.Graders = graderLoader{l}.load(t.Graders, t)
	c.expected()
	t.Skills = l.skills.of(t, c)
	c.templates()
}

// reportf reports a finding at a place of the task.
func (c *taskCheck) reportf(severity decode.Severity, code decode.Code, p decode.Path, format string, args ...any) {
	c.loader.Reportf(c.src, decode.Place(c.node, p...), severity, code, format, args...)
}

// input is the path of a key of the inputs, which flat tasks have at their top.
func (c *taskCheck) input(elems ...any) decode.Path {
	if len(elems) > 0 {
		if key, ok := elems[0].(string); ok && decode.Lookup(decode.Lookup(c.node, "inputs"), key) == nil && decode.Lookup(c.node, key) != nil {
			return elems
		}
	}
	return append(decode.Path{"inputs"}, elems...)
}

func (c *taskCheck) prompt() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		if in.Prompt != "" {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.input("prompt_file"), "a task has a prompt or a prompt_file, not both")
			return
		}
		c.promptFile()
		return
	}
	switch {
	case strings.TrimSpace(in.Prompt) != "":
	case c.has(c.input("prompt")):
		// Scaffolds write one for the edge case, and agents are asked it.
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.input("prompt"), "the prompt of task %q is empty, and is sent as it is", text.Clip(c.task.ID, 80))
	default:
		missingPrompt(c)
	}
}

// missingPrompt reports a task without a prompt, unless it is one for remote agents. To try
// such a task out with another executor is no fault.
func missingPrompt(c *taskCheck) {
	remote, others := c.loader.remote()
	asks := c.task.Inputs.Tool != "" || c.task.Inputs.Input != nil
	switch {
	case asks && remote && !others:
	case asks && (remote || c.loader.options.Executor != ""):
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.input("prompt"), "task %q has no prompt, so an executor other than remote is sent an empty one", text.Clip(c.task.ID, 80))
	default:
		c.reportf(decode.Error, decode.CodeMissingPrompt, c.input("prompt"), "task %q has no prompt", text.Clip(c.task.ID, 80))
	}
}

// remote reports inputs that agents of the suite's executor do not get.
func (c *taskCheck) remote() {
	in := &c.task.Inputs
	remote, others := c.loader.remote()
	if !remote && c.loader.options.Executor == "" {
		for _, key := range []string{"tool", "url", "input", "priority"} {
			if c.has(c.input(key)) {
				c.reportf(decode.Warning, decode.CodeNoEffect, c.input(key), "%s has no effect with executor %s: only remote agents get it", key, text.Clip(c.loader.suite.Config.Executor, 60))
			}
		}
	}
	if others {
		return
	}
	if len(in.FollowUpPrompts) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.input("follow_up_prompts"), "follow_up_prompts has no effect with executor %s: its agents are asked once", c.loader.suite.Config.Executor)
	}
	if len(in.Files) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.input("files"), "executor %s sends its agents no files; only graders find these", c.loader.suite.Config.Executor)
	}
}

// has reports whether a value is written at a place of the task. A key alone is
// none: its value may be about to be typed.
func (c *taskCheck) has(p decode.Path) bool {
	n, depth := decode.Walk(c.node, p)
	return depth == len(p) && !decode.IsNull(decode.Follow(n))
}

func (c *taskCheck) promptFile() {
	l, in := c.loader, &c.task.Inputs
	file := c.promptPath()
	if !filepath.IsLocal(filepath.FromSlash(in.PromptFile)) || !files.Within(l.root(), file) {
		c.reportf(decode.Error, decode.CodeEscapingPath, c.input("prompt_file"), "prompt_file must be a relative path that stays beside the task")
		return
	}
	at := decode.Place(c.node, c.input("prompt_file")...)
	data, err := l.readFile(file, maxPromptBytes)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			l.Reportf(c.src, at, decode.Error, decode.CodeMissingFile, "no such file: %s", l.display(file))
			return
		}
		l.unreadable(file, c.src, at, err)
		return
	}
	text, _, err := decode.PlainText(data, false)
	if err != nil {
		l.unreadable(file, c.src, at, err)
		return
	}
	if strings.TrimSpace(text) == "" {
		l.Reportf(c.src, at, decode.Warning, decode.CodeMissingPrompt, "%s is empty, and is sent as it is", l.display(file))
	}
	in.Prompt = text
}

// promptPath returns the absolute path of the task's prompt_file.
func (c *taskCheck) promptPath() string {
	return filepath.Join(filepath.Dir(c.task.File), filepath.FromSlash(c.task.Inputs.PromptFile))
}

// files checks the files that are put into the workspace and finds their fixtures.
func (c *taskCheck) files() {
	if c.task.ContextDir != "" && c.loader.options.ContextDir == "" {
		c.contextDir()
	}
	targets := map[string]bool{}
	for i := range c.task.Inputs.Files {
		f := &c.task.Inputs.Files[i]
		at := c.input("files", i, "path")
		switch {
		case strings.TrimSpace(f.Path) == "":
			c.reportf(decode.Error, decode.CodeMissingField, at, "files[%d] has no path", i)
			continue
		case !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) == "." || strings.ContainsRune(f.Path, 0):
			c.reportf(decode.Error, decode.CodeEscapingPath, at, "the path %q must be relative and stay in the workspace", text.Clip(f.Path, 80))
			continue
		}
		f.Path = path.Clean(filepath.ToSlash(f.Path))
		if targets[f.Path] {
			c.reportf(decode.Warning, decode.CodeNoEffect, at, "%s is put into the workspace twice; the later one counts", f.Path)
		}
		targets[f.Path] = true
		if f.Content == nil {
			f.Source = c.fixture(f.Path, at)
		}
	}
}

// contextDir checks the fixture directory that the task names.
func (c *taskCheck) contextDir() {
	l := c.loader
	dir := l.fromSuite(c.task.ContextDir)
	l.looked(dir)
	switch {
	case filepath.IsAbs(c.task.ContextDir) || !files.Within(l.root(), dir):
		c.reportf(decode.Error, decode.CodeEscapingPath, decode.At("context_dir"), "context_dir must be relative to the suite and stay in %s", strings.TrimPrefix(l.rootWord(), "in "))
	case !files.IsDir(dir):
		c.reportf(decode.Error, decode.CodeMissingFile, decode.At("context_dir"), "no such directory: %s", l.display(dir))
	}
}

// fixtureDir returns the absolute path of the directory that holds the task's
// fixtures: that of the options, else the task's, else fixtures beside the suite.
// The directory need not exist.
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

// fixture returns the absolute path of a fixture, or "" when it may not be used.
func (c *taskCheck) fixture(rel string, at decode.Path) string {
	l := c.loader
	dir := c.fixtureDir()
	file := filepath.Join(dir, filepath.FromSlash(rel))
	l.looked(file)
	info, err := os.Stat(file)
	if beside := l.beside(c.task); errors.Is(err, fs.ErrNotExist) && beside != "" && l.options.ContextDir == "" {
		near := filepath.Join(beside, filepath.FromSlash(rel))
		l.looked(near)
		if nearInfo, nearErr := os.Stat(near); nearErr == nil {
			dir, file, info, err = beside, near, nearInfo, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "no such fixture: %s%s", l.display(file), c.fixtureHint(rel))
	case err != nil:
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "%s: %s", l.display(file), files.Reason(err))
	case !files.Within(dir, file):
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "the fixture %s is a link that leads out of %s", l.display(file), l.display(dir))
	case l.suite.Allows(file) != nil:
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "the fixture %s is %s", l.display(file), l.suite.Allows(file))
	case !info.Mode().IsRegular():
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "the fixture %s is %s, not a file", l.display(file), files.TypeOf(info.Mode()))
	case info.Size() > MaxFixtureBytes:
		c.reportf(decode.Error, decode.CodeTooLarge, at, "the fixture %s has %d bytes; the limit is %s", l.display(file), info.Size(), files.Size(MaxFixtureBytes))
	case c.bytes+info.Size() > maxTaskFixtures:
		c.reportf(decode.Error, decode.CodeTooLarge, at, "with %s the fixtures of task %q have more than %s", l.display(file), text.Clip(c.task.ID, 80), files.Size(maxTaskFixtures))
	default:
		c.bytes += info.Size()
		return file
	}
	return ""
}

// fixtureHint helps where the path repeats the fixture directory's name, or the
// file stands beside the suite.
func (c *taskCheck) fixtureHint(rel string) string {
	if files.IsRegular(filepath.Join(c.loader.suite.Dir, filepath.FromSlash(rel))) {
		return " (paths are relative to the fixture directory; there is such a file beside the suite: set context_dir to \".\")"
	}
	return ""
}

func (c *taskCheck) environment() {
	for name, value := range c.task.Inputs.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.input("environment", name), "%q cannot be an environment variable", text.Clip(name, 60))
		}
	}
}

// expected checks the patterns that waza itself grades by.
func (c *taskCheck) expected() {
	e := c.task.Expected
	if e == nil {
		return
	}
	check := &Check{loader: c.loader, src: c.src, options: decode.Lookup(c.node, "expected"), decl: c.node, label: "expected", task: c.task}
	for i, p := range e.Matches {
		check.Regexp(decode.At("matches", i), p)
	}
	if e.ToolCalls != nil {
		checkToolCalls(check, "required", e.ToolCalls.Required)
		checkToolCalls(check, "forbidden", e.ToolCalls.Forbidden)
	}
	for i, o := range e.Outcomes {
		if o.Type != "task_completed" {
			check.Warnf(decode.At("outcomes", i, "type"), decode.CodeNoEffect, "only the outcome task_completed is graded, not %q", text.Clip(o.Type, 60))
		}
	}
}

func checkToolCalls(check *Check, key string, calls []ExpectedToolCall) {
	n := 0
	for i, call := range calls {
		if call.Tool == "" && len(call.Arguments) == 0 && call.Pattern == "" && call.ArgsPattern == "" {
			check.Errorf(decode.At("tool_calls", key, i), decode.CodeChecksNothing, "tool_calls.%s[%d] has neither tool nor arguments, pattern or args_pattern", key, i)
		}
		if n += min(max(call.Count, 1), MaxExpectedCalls+1); n > MaxExpectedCalls && key == "required" {
			check.Errorf(decode.At("tool_calls", key, i), decode.CodeTooLarge, "tool_calls.%s asks for more than %d calls", key, MaxExpectedCalls)
			n = math.MinInt // once
		}
		check.Regexp(decode.At("tool_calls", key, i, "pattern"), call.Pattern)
		check.Regexp(decode.At("tool_calls", key, i, "args_pattern"), call.ArgsPattern)
	}
}
