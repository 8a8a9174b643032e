package eval

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// taskCheck checks one task after it is decoded.
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
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("id"), "id must be a single line without control characters")
	}
	t.Vars = l.suite.Inputs
	t.ContextDir = c.directory(t.ContextDir, decode.At("context_dir"))
	for i, dir := range t.SkillDirectories {
		t.SkillDirectories[i] = c.directory(dir, decode.At("skill_directories", i))
	}
	c.checkPrompt()
	c.checkRemoteInputs()
	checkVoice(c)
	c.checkFiles()
	checkScene(c)
	checkInstructions(c)
	c.task.MCPMocks = loadMocks(c.loader, c.src, c.node, c.task.MCPMocks)
	c.checkEnvironment()
	t.Graders = graderLoader{l}.load(t.Graders, t)
	c.checkExpected()
	t.Skills = l.skills.forTask(t, c)
	c.checkTemplates()
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

func (c *taskCheck) checkPrompt() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		if in.Prompt != "" {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("prompt_file"), "a task has a prompt or a prompt_file, not both")
			return
		}
		c.loadPromptFile()
		return
	}
	switch {
	case strings.TrimSpace(in.Prompt) != "":
	case c.has(c.inputPath("prompt")):
		// Scaffolds write an empty prompt as an edge case, and agents get it.
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.inputPath("prompt"), "the prompt of task %q is empty and is sent unchanged", text.Clip(c.task.ID, 80))
	default:
		reportMissingPrompt(c)
	}
}

// reportMissingPrompt reports a task without a prompt, unless remote agents do it. Trying such a task
// with another executor is not an error.
func reportMissingPrompt(c *taskCheck) {
	remote, others := c.loader.remote()
	asks := c.task.Inputs.Tool != "" || c.task.Inputs.Input != nil
	switch {
	case asks && remote && !others:
	case asks && (remote || c.loader.options.Executor != ""):
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.inputPath("prompt"), "task %q has no prompt; executors other than remote get an empty one", text.Clip(c.task.ID, 80))
	default:
		c.reportf(decode.Error, decode.CodeMissingPrompt, c.inputPath("prompt"), "task %q has no prompt", text.Clip(c.task.ID, 80))
	}
}

// checkRemoteInputs reports inputs that the agents of the suite's executor do not get.
func (c *taskCheck) checkRemoteInputs() {
	in := &c.task.Inputs
	remote, others := c.loader.remote()
	if !remote && c.loader.options.Executor == "" {
		for _, key := range []string{"tool", "url", "input", "priority"} {
			if c.has(c.inputPath(key)) {
				c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath(key), "%s has no effect with executor %s: only executor remote uses it", key, text.Clip(c.loader.suite.Config.Executor, 60))
			}
		}
	}
	if others {
		return
	}
	if len(in.FollowUpPrompts) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("follow_up_prompts"), "follow_up_prompts has no effect with executor %s: its agents get only one prompt", c.loader.suite.Config.Executor)
	}
	if len(in.Files) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("files"), "executor %s sends no files to its agents; only graders see these", c.loader.suite.Config.Executor)
	}
}

// clientsOf returns the clients of the suite's executor; nil if it has none. They are not known
// with a matrix of executors, or without a vocabulary.
func clientsOf(l *loader) (clients Addresser, known bool) {
	if _, several := l.matrix[ParamExecutor]; several || l.options.Vocabulary == nil || l.options.Executor != "" {
		return nil, false
	}
	clients, _ = l.suite.ExecutorOptions[l.suite.Config.Executor].(Addresser)
	return clients, true
}

// checkVoice reports a confidence of speech recognition that has no effect.
func checkVoice(c *taskCheck) {
	if clients, known := clientsOf(c.loader); known && clients == nil && c.task.Inputs.Voice != nil {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("voice"), "voice has no effect with executor %s: only messages to clients have it", text.Clip(c.loader.suite.Config.Executor, 60))
	}
}

// checkRecipients checks the clients that must receive the message.
func checkRecipients(c *taskCheck, check *Check) {
	e := c.task.Expected
	clients, known := clientsOf(c.loader)
	if e.Recipients == nil || !known {
		return
	}
	if clients == nil {
		check.Warnf(decode.At("recipients"), decode.CodeNoEffect, "recipients has no effect with executor %s: it has no clients", text.Clip(c.loader.suite.Config.Executor, 60))
		return
	}
	names, others := clients.ClientNames()
	seen := map[string]bool{}
	for i, name := range e.Recipients {
		at, folded := decode.At("recipients", i), strings.ToLower(name)
		switch is := func(n string) bool { return strings.EqualFold(n, name) }; {
		case strings.TrimSpace(name) == "":
			check.Errorf(at, decode.CodeInvalidValue, "recipients[%d] is empty", i)
		case seen[folded]:
			check.Warnf(at, decode.CodeNoEffect, "recipients[%d] has no effect: %q is already in the list", i, text.Clip(name, 80))
		case !others && !slices.ContainsFunc(names, is):
			check.Suggestf(at, decode.Error, decode.CodeInvalidValue, decode.Nearest(name, names), "recipients[%d]: unknown client %q; config.router.clients has %s", i, text.Clip(name, 80), text.Clip(strings.Join(names, ", "), 300))
		}
		seen[folded] = true
		for _, n := range names { // spelled as in the suite
			if strings.EqualFold(n, name) {
				e.Recipients[i] = n
			}
		}
	}
}

// has reports whether a value is written at a place in the task. A key without a value does not
// count, because the author may still be typing it.
func (c *taskCheck) has(p decode.Path) bool {
	n, depth := decode.Walk(c.node, p)
	return depth == len(p) && !decode.IsNull(decode.Follow(n))
}

func (c *taskCheck) loadPromptFile() {
	l, in := c.loader, &c.task.Inputs
	file := c.promptPath()
	if !filepath.IsLocal(filepath.FromSlash(in.PromptFile)) || !files.Within(l.root(), file) {
		c.reportf(decode.Error, decode.CodeEscapingPath, c.inputPath("prompt_file"), "prompt_file must be a relative path in or below the task's directory")
		return
	}
	at := decode.Place(c.node, c.inputPath("prompt_file")...)
	data, err := l.readFile(file, maxPromptBytes)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			l.Reportf(c.src, at, decode.Error, decode.CodeMissingFile, "no such file: %s", l.display(file))
			return
		}
		l.reportUnreadable(file, c.src, at, err)
		return
	}
	text, _, err := decode.PlainText(data, false)
	if err != nil {
		l.reportUnreadable(file, c.src, at, err)
		return
	}
	if strings.TrimSpace(text) == "" {
		l.Reportf(c.src, at, decode.Warning, decode.CodeMissingPrompt, "%s is empty and is sent unchanged", l.display(file))
	}
	in.Prompt = text
}

// promptPath returns the absolute path of the task's prompt_file.
func (c *taskCheck) promptPath() string {
	return filepath.Join(filepath.Dir(c.task.File), filepath.FromSlash(c.task.Inputs.PromptFile))
}

// checkFiles checks the files for the workspace and finds their fixtures.
func (c *taskCheck) checkFiles() {
	if c.task.ContextDir != "" && c.loader.options.ContextDir == "" {
		c.checkContextDir()
	}
	targets := map[string]bool{}
	for i := range c.task.Inputs.Files {
		f := &c.task.Inputs.Files[i]
		at := c.inputPath("files", i, "path")
		switch {
		case strings.TrimSpace(f.Path) == "":
			c.reportf(decode.Error, decode.CodeMissingField, at, "files[%d] has no path", i)
			continue
		case !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) == "." || strings.ContainsRune(f.Path, 0):
			c.reportf(decode.Error, decode.CodeEscapingPath, at, "path %q must be relative and inside the workspace", text.Clip(f.Path, 80))
			continue
		}
		f.Path = path.Clean(filepath.ToSlash(f.Path))
		if targets[f.Path] {
			c.reportf(decode.Warning, decode.CodeNoEffect, at, "duplicate file %s; the last one counts", f.Path)
		}
		targets[f.Path] = true
		if f.Content == nil {
			f.Source = c.fixture(f.Path, at)
		}
	}
	addContextFixture(c)
}

// checkContextDir checks the fixture directory that the task names.
func (c *taskCheck) checkContextDir() {
	l := c.loader
	dir := l.fromSuite(c.task.ContextDir)
	l.dependsOn(dir)
	switch {
	case filepath.IsAbs(c.task.ContextDir) || !files.Within(l.root(), dir):
		c.reportf(decode.Error, decode.CodeEscapingPath, decode.At("context_dir"), "context_dir must be relative to the suite and inside %s", l.rootWord())
	case !files.IsDir(dir):
		c.reportf(decode.Error, decode.CodeMissingFile, decode.At("context_dir"), "no such directory: %s", l.display(dir))
	}
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

// fixture returns the absolute path of a fixture, or "" when it cannot be used.
func (c *taskCheck) fixture(rel string, at decode.Path) string {
	l := c.loader
	dir := c.fixtureDir()
	file := filepath.Join(dir, filepath.FromSlash(rel))
	l.dependsOn(file)
	info, err := os.Stat(file)
	if beside := l.beside(c.task); errors.Is(err, fs.ErrNotExist) && beside != "" && l.options.ContextDir == "" {
		near := filepath.Join(beside, filepath.FromSlash(rel))
		l.dependsOn(near)
		if nearInfo, nearErr := os.Stat(near); nearErr == nil {
			dir, file, info, err = beside, near, nearInfo, nil
		}
	} else if beside != "" && err == nil && l.options.ContextDir == "" {
		reportAmbiguous(l, c.src, decode.Place(c.node, at...), file, filepath.Join(beside, filepath.FromSlash(rel)))
	}
	if c.usable(dir, file, rel, info, err, at) {
		return file
	}
	return ""
}

// fixtureHint returns a hint for a missing fixture, if a file of that path is beside the suite.
func (c *taskCheck) fixtureHint(rel string) string {
	if files.IsRegular(filepath.Join(c.loader.suite.Dir, filepath.FromSlash(rel))) {
		return " (paths are relative to the fixture directory, but the file is beside the suite: set context_dir to \".\")"
	}
	return ""
}

func (c *taskCheck) checkEnvironment() {
	for name, value := range c.task.Inputs.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("environment", name), "%q cannot be an environment variable", text.Clip(name, 60))
		}
	}
}

// checkExpected checks the expectations that waza grades itself.
func (c *taskCheck) checkExpected() {
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
	checkRecipients(c, check)
	for i, o := range e.Outcomes {
		at := decode.At("outcomes", i)
		switch {
		case o.Type != OutcomeCompleted && o.Type != OutcomeToolCalled:
			check.Warnf(append(at, "type"), decode.CodeNoEffect, "outcome %q is not graded; waza grades task_completed and tool_called", text.Clip(o.Type, 60))
		case o.Type == OutcomeToolCalled && o.CalledTool() == "":
			check.Warnf(append(at, "type"), decode.CodeNoEffect, "tool_called has no effect without tool_name")
		case o.Type == OutcomeCompleted && o.ToolName+o.Value != "":
			check.Warnf(at, decode.CodeNoEffect, "tool_name and value have no effect with `type: task_completed`")
		}
	}
}

func checkToolCalls(check *Check, key string, calls []ExpectedToolCall) {
	n := 0
	for i, call := range calls {
		if call.Tool == "" && len(call.Arguments) == 0 && call.Pattern == "" && call.ArgsPattern == "" {
			check.Errorf(decode.At("tool_calls", key, i), decode.CodeChecksNothing, "tool_calls.%s[%d] needs at least one of tool, arguments, pattern and args_pattern", key, i)
		}
		if n += min(max(call.Count, 1), MaxExpectedCalls+1); n > MaxExpectedCalls && key == "required" {
			check.Errorf(decode.At("tool_calls", key, i), decode.CodeTooLarge, "tool_calls.%s requires more than %d calls", key, MaxExpectedCalls)
			n = math.MinInt // report it once
		}
		check.Regexp(decode.At("tool_calls", key, i, "pattern"), call.Pattern)
		check.Regexp(decode.At("tool_calls", key, i, "args_pattern"), call.ArgsPattern)
	}
}
