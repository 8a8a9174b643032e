package eval

import (
	"regexp"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
)

// basicEnvironment are the variables that hardly any program works without, and those
// by which waza finds the processes that it has to end.
var basicEnvironment = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_*", "TMPDIR", "WAZA_MARK_*"}

// Inherited returns those variables of an environment that the programs of a suite
// get: agents, graders and hooks. The result is environ itself where the suite says
// nothing of it.
func (c *Config) Inherited(environ []string) []string {
	if c.Environment == nil {
		return environ
	}
	var patterns []*regexp.Regexp
	for _, name := range slices.Concat(basicEnvironment, c.Environment) {
		if pattern, err := discover.CompileGlob(name); err == nil {
			patterns = append(patterns, pattern)
		}
	}
	var list []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			list = append(list, variable)
		}
	}
	return list
}

// environment reports what cannot be the name of a variable.
func (l suiteCheck) environment() {
	for i, name := range l.suite.Config.Environment {
		at := decode.At("config", "environment", i)
		_, err := discover.CompileGlob(name)
		switch {
		case err != nil:
			l.at(decode.Error, decode.CodeInvalidValue, at, "%q is no pattern: %s", name, err)
		case name == "":
			l.at(decode.Error, decode.CodeInvalidValue, at, "the name of a variable is empty")
		case strings.Contains(name, "="):
			l.at(decode.Error, decode.CodeInvalidValue, at, "%q is no name of a variable: list names here; a task's inputs.environment sets values", name)
		}
	}
}
