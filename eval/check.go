package eval

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// Check is what a [Kind]'s Check function is told about the place its options
// stand in, and where it reports what it finds. It is valid only during that
// call and must stay in its goroutine.
//
// The Path of a report is located in the file that the author wrote. Where the
// path leads to nothing written, the finding stands at the nearest place that
// is. Messages need not name the grader: it is put in front of them.
type Check struct {
	loader  *loader
	src     *decode.Source
	options *yaml.Node // the options of every place they may stand in, as one map
	decl    *yaml.Node // where the grader, or the name of the executor, is declared
	label   string
	task    *Task
}

// Errorf reports a fault that keeps the suite from running.
func (c *Check) Errorf(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Error, code, "", format, args...)
}

// Warnf reports something worth mending.
func (c *Check) Warnf(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Warning, code, "", format, args...)
}

// Infof reports something the author may want to know.
func (c *Check) Infof(path decode.Path, code decode.Code, format string, args ...any) {
	c.Suggestf(path, decode.Info, code, "", format, args...)
}

// Suggestf reports a finding with the text to put in place of the value at path;
// an empty suggestion means that none is known.
func (c *Check) Suggestf(path decode.Path, severity decode.Severity, code decode.Code, suggestion, format string, args ...any) {
	d := c.src.Diagnostic(c.locate(path), severity, code, c.label+": "+fmt.Sprintf(format, args...))
	d.Suggestion = suggestion
	c.loader.Report(d)
}

// OneOf reports a [decode.Error] unless value is one of known, and returns whether it
// is. The message names the known ones, and the nearest is suggested.
func (c *Check) OneOf(path decode.Path, value string, known ...string) bool {
	if slices.Contains(known, value) {
		return true
	}
	c.Suggestf(path, decode.Error, decode.CodeInvalidValue, decode.Nearest(value, known),
		"%s%q is not one of %s", path.Prefix(), value, strings.Join(known, ", "))
	return false
}

// Regexp compiles an RE2 pattern. It reports a bad one at path and returns nil.
func (c *Check) Regexp(path decode.Path, pattern string) *regexp.Regexp {
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.Errorf(path, decode.CodeBadRegex, "%sbad regular expression: %s", path.Prefix(), regexpFault(err))
		return nil
	}
	return re
}

// Resolve finds a regular file that the options name by a relative path, see
// [Beside.Resolve]. It returns the file's absolute path and the paths that were tried.
func (c *Check) Resolve(rel string) (abs string, tried []string, ok bool) {
	abs, tried, ok = c.loader.suite.resolve(rel, c.loader.beside(c.task))
	c.loader.looked(tried...)
	return abs, tried, ok
}

// File is [Check.Resolve] that reports a missing file at path, naming the places
// that were searched. It returns "" when the file is missing.
func (c *Check) File(path decode.Path, rel string) string {
	abs, tried, ok := c.Resolve(rel)
	if !ok {
		for i := range tried {
			tried[i] = c.loader.display(tried[i])
		}
		c.Errorf(path, decode.CodeMissingFile, "%sno such file: %s (tried %s)", path.Prefix(), rel, strings.Join(tried, ", "))
		return ""
	}
	return abs
}

// ReadFile returns the content of a file, of an editor's unsaved one where there
// is such. It refuses what is not a regular file and what has more than 8 MiB.
func (c *Check) ReadFile(abs string) ([]byte, error) { return c.loader.readFile(abs, maxYAMLBytes) }

// ReadSkill is [Check.ReadFile] for a file of a skill, which may be in any place.
func (c *Check) ReadSkill(abs string) ([]byte, error) { return c.loader.readSkill(abs, maxYAMLBytes) }

// Allows reports at path a file that the suite may not read, see [Suite.Allows], and
// returns whether it may.
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

// Task returns the task that declares the grader; nil for a grader of the suite
// and for an executor.
func (c *Check) Task() *Task { return c.task }

// Has reports whether the author wrote something at path.
func (c *Check) Has(path decode.Path) bool {
	_, depth := decode.Walk(c.options, path)
	return depth == len(path) && c.options != nil
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

// regexpFault says what is wrong with a pattern, with a hint for what other
// dialects of regular expressions have.
func regexpFault(err error) string {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return err.Error()
	}
	msg := fmt.Sprintf("%s: `%s`", se.Code, text.Clip(se.Expr, 60))
	switch {
	case strings.HasPrefix(se.Expr, "(?=") || strings.HasPrefix(se.Expr, "(?!") || strings.HasPrefix(se.Expr, "(?<"):
		msg += " (RE2 has no look-around)"
	case len(se.Expr) == 2 && se.Expr[0] == '\\' && se.Expr[1] >= '1' && se.Expr[1] <= '9':
		msg += " (RE2 has no back-references)"
	}
	return msg
}
