package dotnet

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// addGrader adds a grader with one option. Its name is unique in the scenario, because a grader replaces
// an earlier one of its name.
func (s *scenario) addGrader(at *yaml.Node, name, kind, option string, value *yaml.Node) dialect.Map {
	options := dialect.NewMap(at)
	options.Set(option, value)
	name = text.Clip(name, 60)
	if s.names[name]++; s.names[name] > 1 {
		name = fmt.Sprintf("%s, %d", name, len(s.graders.Content)+1)
	}
	g := dialect.NewMap(at)
	g.Set("name", dialect.Scalar(at, name))
	g.Set("type", dialect.Scalar(at, kind))
	g.Set("config", options.Node)
	s.graders.Content = append(s.graders.Content, g.Node)
	return options
}

// addAssertions adds a grader for each assertion.
func (s *scenario) addAssertions() {
	for _, a := range s.list(s.node, "assertions") {
		if a == nil || a.Kind != yaml.MappingNode {
			s.fault(a, "an assertion must be a map with a type, got %s", decode.Describe(a))
			continue
		}
		s.addAssertion(a, dialect.TextOf(decode.Lookup(a, "type")))
	}
}

func (s *scenario) addAssertion(a *yaml.Node, kind string) {
	switch kind {
	case "output_contains", "output_not_contains":
		if value := s.need(a, "value"); value != nil {
			s.addGrader(a, kind+" "+value.Value, "text", strings.TrimPrefix(kind, "output_"), dialect.Texts(value, value.Value))
		}
	case "output_matches", "output_not_matches":
		s.addPattern(a, kind)
	case "exit_success":
		// A trial whose agent fails ends in an error, so this leaves an answer.
		s.addGrader(a, kind, "text", "regex_match", dialect.Texts(a, `(?s).`))
	case "file_exists", "file_not_exists":
		if file := s.need(a, "path"); file != nil {
			option := map[string]string{"file_exists": "must_exist", "file_not_exists": "must_not_exist"}[kind]
			s.addGrader(a, kind+" "+file.Value, "file", option, dialect.Texts(file, glob(file.Value)))
		}
	case "file_contains", "file_not_contains":
		s.addContent(a, kind)
	case "run_command_and_assert":
		s.addCommand(a)
	default:
		s.fault(a, "unknown assertion type %q", text.Clip(kind, 60))
		return
	}
	s.warnUnknown(a, "type", "value", "pattern", "path", "command_to_run", "command_arguments", "expected_exit_code",
		"expected_std_output_contains", "expected_std_error_contains", "expected_std_output_matches",
		"expected_std_error_matches", "command_timeout")
}

// Scripts that start a program, which must exist, from the workspace. The exit code of a program of anyExitCode
// does not count. The first argument of sameExitCode is the exit code for a missing program.
const (
	anyExitCode  = `command -v -- "$1" >/dev/null || exit 127; "$@" || true`
	sameExitCode = `missing=$1; shift; command -v -- "$1" >/dev/null || { echo "no such program: $1" >&2; exit "$missing"; }; exec "$@"`
)

// missingCode returns the exit code for a missing program, which differs from the expected one.
func missingCode(expected int) string {
	if expected == 127 {
		return "126"
	}
	return "127"
}

// addCommand adds a program that runs in the workspace, in which letter case does not count. Its exit code
// counts only if the assertion has one.
func (s *scenario) addCommand(a *yaml.Node) {
	command := s.need(a, "command_to_run")
	if command == nil {
		return
	}
	get := func(key string) *yaml.Node {
		if n := decode.Follow(decode.Lookup(a, key)); strings.TrimSpace(dialect.TextOf(n)) != "" {
			return n
		}
		return nil
	}
	code := decode.Follow(decode.Lookup(a, "expected_exit_code"))
	if decode.IsNull(code) {
		code = nil
	}
	expect, patterns := dialect.NewMap(a), map[string]*yaml.Node{}
	for _, e := range []struct{ key, option string }{
		{"expected_std_output_contains", "stdout_matches"}, {"expected_std_output_matches", "stdout_matches"},
		{"expected_std_error_contains", "stderr_matches"}, {"expected_std_error_matches", "stderr_matches"},
	} {
		n := get(e.key)
		if n == nil {
			continue
		}
		expression := regexp.QuoteMeta(n.Value)
		if strings.HasSuffix(e.key, "_matches") {
			if expression = n.Value; !s.isPortable(n) {
				return
			}
		}
		if patterns[e.option] == nil {
			patterns[e.option] = dialect.List(n)
			expect.Set(e.option, patterns[e.option])
		}
		patterns[e.option].Content = append(patterns[e.option].Content, dialect.Scalar(n, "(?i)"+expression))
	}
	if code == nil && expect.Len() == 0 {
		s.fault(a, "an assertion of the type run_command_and_assert needs expected_exit_code, or a condition on the output")
		return
	}
	words := append([]string{command.Value}, argumentsOf(dialect.TextOf(get("command_arguments")))...)
	if code == nil {
		words = append([]string{"sh", "-c", anyExitCode, "sh"}, words...)
	} else {
		wanted := s.whole(code, "expected_exit_code")
		expect.Set("exit_code", dialect.Scalar(code, wanted))
		if strings.Contains(command.Value, "/") && !filepath.IsAbs(command.Value) { // waza looks for it beside the suite otherwise
			words = append([]string{"sh", "-c", sameExitCode, "sh", missingCode(wanted)}, words...)
		}
	}
	if len(patterns) > 0 {
		expect.Set("syntax", dialect.Scalar(a, "javascript"))
	}
	name := strings.TrimSpace("run_command_and_assert " + command.Value + " " + dialect.TextOf(get("command_arguments")))
	options := s.addGrader(a, name, "program", "command", dialect.Scalar(command, words[0]))
	if len(words) > 1 {
		options.Set("args", dialect.Texts(a, words[1:]...))
	}
	options.Set("trust_workspace", dialect.Scalar(a, true))
	options.Set("network", dialect.Scalar(a, true))
	limit := cmp.Or(s.positive(a, "command_timeout"), s.positive(s.node, "timeout"), defaultTimeout)
	options.Set("timeout", dialect.Scalar(a, limit))
	options.Set("expect", expect.Node)
}

// whole returns a whole number; 0 after it reported something else.
func (s *scenario) whole(n *yaml.Node, key string) int {
	var value int
	if n.Kind != yaml.ScalarNode || n.Decode(&value) != nil {
		s.fault(n, "%s must be a whole number, got %s", key, decode.Describe(n))
	}
	return value
}

// argumentsOf splits arguments like .NET: double quotes group words, two of them in a group are one, and a
// backslash escapes only a double quote, or backslashes before one.
func argumentsOf(line string) (words []string) {
	var word strings.Builder
	started, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
			started = true
			if i += n; i == len(line) || line[i] != '"' {
				word.WriteString(strings.Repeat(`\`, n))
				i--
				continue
			}
			word.WriteString(strings.Repeat(`\`, n/2))
			if n%2 == 1 {
				word.WriteByte('"')
				continue
			}
			i--
		case c == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			word.WriteByte('"')
			i++
		case c == '"':
			quoted, started = !quoted, true
		case (c == ' ' || c == '\t') && !quoted:
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteByte(c)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// need returns the text of a key that an assertion needs, or nil.
func (s *scenario) need(a *yaml.Node, key string) *yaml.Node {
	n := decode.Follow(decode.Lookup(a, key))
	if strings.TrimSpace(dialect.TextOf(n)) == "" {
		s.fault(a, "an assertion of the type %s needs %s", dialect.TextOf(decode.Lookup(a, "type")), key)
		return nil
	}
	return n
}

// onlyDotNet finds parts of .NET's regular expressions that JavaScript lacks or reads in another way.
var onlyDotNet = text.Pattern(`\\[AzZGae]|\\p\{Is|\(\?(?:#|>|'|\(|<[^>=!]*-)|\(\?[a-z]*[xn]|-\[`)

// addPattern adds a regular expression. Those of .NET, in any letter case, are nearest to JavaScript's.
func (s *scenario) addPattern(a *yaml.Node, kind string) {
	n := s.need(a, "pattern")
	if n == nil {
		return
	}
	if !s.isPortable(n) {
		return
	}
	option := map[string]string{"output_matches": "regex_match", "output_not_matches": "regex_not_match"}[kind]
	options := s.addGrader(a, kind+" "+n.Value, "text", option, dialect.Texts(n, "(?i)"+n.Value))
	options.Set("syntax", dialect.Scalar(n, "javascript"))
}

// isPortable reports whether JavaScript reads a pattern as .NET does. If not, it blocks the scenario.
func (s *scenario) isPortable(n *yaml.Node) bool {
	unescaped := strings.ReplaceAll(n.Value, `\\`, "") // an escaped backslash is no part of what follows
	part := onlyDotNet().FindString(unescaped)
	if part != "" {
		s.block(n, "the pattern has %q, which only .NET reads that way", text.Clip(part, 20))
	}
	return part == ""
}

// addContent adds a check of the content of files: one that the pattern matches contains the value, or
// none does, and at least one exists.
func (s *scenario) addContent(a *yaml.Node, kind string) {
	file, value := s.need(a, "path"), s.need(a, "value")
	if file == nil || value == nil {
		return
	}
	content := dialect.NewMap(a)
	content.Set("path", dialect.Scalar(file, glob(file.Value)))
	option := map[string]string{"file_contains": "must_match", "file_not_contains": "must_not_match"}[kind]
	content.Set(option, dialect.Texts(value, regexp.QuoteMeta(value.Value)))
	options := s.addGrader(a, kind+" "+file.Value, "file", "content_patterns", dialect.List(a, content.Node))
	options.Set("must_exist", dialect.Texts(file, glob(file.Value)))
}

// glob returns a pattern of skill-validator, which only knows *, as a pattern of waza.
func glob(pattern string) string {
	var b strings.Builder
	for _, r := range strings.TrimPrefix(pattern, "./") {
		if strings.ContainsRune(`?[]{}`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// addConstraints adds graders for the rules on the agent's work.
func (s *scenario) addConstraints() {
	for _, c := range []struct{ key, kind, option string }{
		{"expect_tools", "tool_calls", "required_tools"},
		{"reject_tools", "tool_calls", "forbidden_tools"},
	} {
		n := s.get(c.key)
		if tools := s.texts(c.key); len(tools) > 0 {
			s.addGrader(n, c.key, c.kind, c.option, dialect.List(n, tools...))
		}
	}
	for _, c := range []struct{ key, option string }{{"max_turns", "max_iterations"}, {"max_tokens", "max_tokens"}} {
		if most := s.positive(s.node, c.key); most > 0 {
			n := s.get(c.key)
			s.addGrader(n, c.key, "behavior", c.option, dialect.Scalar(n, most))
		}
	}
}

// texts returns the texts of a list.
func (s *scenario) texts(key string) (texts []*yaml.Node) {
	n := s.get(key)
	items, ok := dialect.ListOf(n)
	if !ok {
		s.fault(n, "%s must be a list of texts, got %s", key, decode.Describe(n))
	}
	for _, item := range items {
		switch {
		case strings.TrimSpace(dialect.TextOf(item)) != "":
			texts = append(texts, dialect.Scalar(item, item.Value))
		case !decode.IsText(item):
			s.fault(cmp.Or(item, n), "an item of %s must be a text, got %s", key, describe(item))
		}
	}
	return texts
}

// describe is like [decode.Describe], also for a node that aliases leave without a value.
func describe(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	return decode.Describe(n)
}

// rubricName is the name of the grader that asks the judge.
const rubricName = "rubric"

// addRubric adds the judge, which marks each criterion in both arms. The difference between the arms is
// what the skill adds.
func (s *scenario) addRubric() {
	if criteria := s.texts("rubric"); len(criteria) > 0 {
		n := s.get("rubric")
		s.addGrader(n, rubricName, "prompt", "statements", dialect.List(n, criteria...))
	}
}
