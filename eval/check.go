package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// A Check gives the Check function of a [Kind] the context of its options, and collects its
// findings. It is valid only during that call and must stay in its goroutine.
//
// A Check locates the path of a finding in the file that the author wrote. If nothing is written
// at the path, it uses the nearest place that exists. Messages need not name the grader, because
// a Check puts the name in front.
type Check struct {
	loader  *loader
	src     *decode.Source
	options *yaml.Node // the options from all places, as one map
	decl    *yaml.Node // where the grader or the executor's name is declared
	label   string
	task    *Task
}

// Errorf reports a fault that keeps the suite from running.
func (c *Check) Errorf(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Error, code, "", format, args...)
}

// Warnf reports something that the author should fix.
func (c *Check) Warnf(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Warning, code, "", format, args...)
}

// Infof reports something that the author may want to know.
func (c *Check) Infof(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Info, code, "", format, args...)
}

// Suggestf reports a finding with a replacement for the value at path. An empty
// suggestion means that no replacement is known.
func (c *Check) Suggestf(path decode.Path, severity decode.Severity, code decode.Code, suggestion, format string, args ...any) {
	d := c.src.Diagnostic(c.locate(path), severity, code, c.label+": "+fmt.Sprintf(format, args...))
	d.Suggestion = suggestion
	c.loader.Report(d)
}

// Unused warns of what the author wrote at paths, if it has no effect, and says why.
func (c *Check) Unused(why string, paths ...decode.Path) {
	for _, path := range paths {
		if c.Has(path) {
			c.Warnf(path, decode.CodeNoEffect, "%s has no effect: %s", path, why)
		}
	}
}

// UnusedByAgents warns of the settings that an executor cannot give to agents that it does not
// start itself, and says why.
func (c *Check) UnusedByAgents(why string) {
	config := &c.Suite().Config
	for _, setting := range []struct {
		key   string
		given bool
	}{
		{"skill_directories", len(config.SkillDirectories) > 0},
		{"instruction_files", len(config.InstructionFiles) > 0},
		{"mcp_servers", len(config.MCPServers) > 0},
		{"first_event_timeout_seconds", config.FirstEventTimeoutSeconds > 0},
	} {
		if setting.given {
			c.Unused(why, decode.At(setting.key))
		}
	}
}

// OneOf reports whether value is one of known. If it is not, OneOf adds a [decode.Error]. The
// message lists the known values; the nearest one is the suggestion.
func (c *Check) OneOf(path decode.Path, value string, known ...string) bool {
	if slices.Contains(known, value) {
		return true
	}
	c.Suggestf(path, decode.Error, decode.CodeInvalidValue, decode.Nearest(value, known),
		"%s%q is not one of %s", path.Prefix(), value, strings.Join(known, ", "))
	return false
}

// Regexp compiles an RE2 pattern. It reports an invalid one at path and returns nil.
func (c *Check) Regexp(path decode.Path, pattern string) *regexp.Regexp {
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.Errorf(path, decode.CodeBadRegex, "%sinvalid regular expression: %s", path.Prefix(), text.RegexpFault(err))
		return nil
	}
	return re
}

// Pattern reports a pattern that does not compile in a syntax.
func (c *Check) Pattern(path decode.Path, syntax pattern.Syntax, text string) {
	if syntax == "" || syntax == pattern.RE2 {
		c.Regexp(path, text)
	} else if _, err := pattern.Compile(syntax, text); err != nil {
		c.Errorf(path, decode.CodeBadRegex, "%sinvalid regular expression: %s", path.Prefix(), err)
	}
}

// SkillName notes that the option at path names a skill. [Load] warns if the suite has skills but
// none of that name, once all skills are found.
func (c *Check) SkillName(path decode.Path, name string) {
	c.loader.skillsNamed = append(c.loader.skillsNamed, namedSkill{name, c.src, c.locate(path), c.label})
}

// Resolve finds a regular file by a relative path from the options, see [Beside.Resolve]. It
// returns the file's absolute path and the paths that it tried.
func (c *Check) Resolve(rel string) (abs string, tried []string, ok bool) {
	abs, tried, ok = c.loader.suite.Resolve(rel, c.loader.beside(c.task))
	c.loader.dependsOn(tried...)
	return abs, tried, ok
}

// File is like [Check.Resolve], but reports a missing file at path, with the places that it
// searched, and returns "".
func (c *Check) File(path decode.Path, rel string) string {
	abs, tried, ok := c.Resolve(rel)
	if !ok {
		c.Errorf(path, decode.CodeMissingFile, "%sno such file: %s (tried %s)", path.Prefix(), rel, c.loader.displayAll(tried))
		return ""
	}
	return abs
}

// ReadFile returns the content of a file, or the unsaved content that an editor has for it. It
// refuses files larger than 8 MiB and everything but regular files.
func (c *Check) ReadFile(abs string) ([]byte, error) { return c.loader.readFile(abs, maxYAMLBytes) }

// ReadSkill is like [Check.ReadFile] for the files of a skill, which can be anywhere.
func (c *Check) ReadSkill(abs string) ([]byte, error) { return c.loader.readSkill(abs, maxYAMLBytes) }

// Allows reports whether the suite can read a file, see [reach.Places.Allows]. If it cannot,
// Allows adds a finding at path.
func (c *Check) Allows(path decode.Path, abs string) bool {
	err := c.loader.suite.Allows(abs)
	if err != nil {
		c.Errorf(path, decode.CodeEscapingPath, "%s%s is %s", path.Prefix(), c.loader.display(abs), err)
	}
	return err == nil
}

// SuiteDir returns the absolute path of the suite's directory.
func (c *Check) SuiteDir() string { return c.loader.suite.Dir }

// Suite returns the suite. Its tasks are not complete yet.
func (c *Check) Suite() *Suite { return c.loader.suite }

// Task returns the task that declares the grader. It is nil for a grader of the suite and for an
// executor.
func (c *Check) Task() *Task { return c.task }

// Has reports whether the author wrote something at path.
func (c *Check) Has(path decode.Path) bool {
	_, depth := decode.Walk(c.options, path)
	return depth == len(path) && c.options != nil
}

// Negated reports whether the grader is negated.
func (c *Check) Negated() bool {
	n := decode.Lookup(c.decl, "negate")
	if n == nil {
		return false
	}
	negated, ok := decode.BoolOf(decode.Follow(n))
	return ok && negated
}

func (c *Check) locate(path decode.Path) *yaml.Node {
	if c.options == nil {
		return c.decl
	}
	n, depth := decode.Walk(c.options, path)
	if depth == 0 {
		return c.decl
	}
	return n
}
