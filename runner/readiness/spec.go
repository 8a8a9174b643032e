package readiness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/skill"
	"waza/eval/text"
)

const (
	maxName          = 64  // characters
	maxCompatibility = 500 // characters
	maxEvidence      = 120 // bytes
)

var validName = text.Pattern(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// specOf checks a SKILL.md against the Agent Skills specification.
func specOf(s *skill.Skill) []Finding {
	return []Finding{
		specFrontmatter(s), specAllowed(s), specName(s), specDir(s), specDescription(s), specSecurity(s), specCompatibility(s),
		checkValue(s, "spec-license", "license", s.Value("license")),
		checkValue(s, "spec-version", "metadata.version", decode.Lookup(s.Value("metadata"), "version")),
	}
}

func passed(name, summary string) Finding {
	return Finding{Name: name, Passed: true, Summary: summary, Status: "ok"}
}

// failed returns a finding about a line.
func failed(name string, line int, evidence, format string, args ...any) Finding {
	return Finding{
		Name: name, Summary: fmt.Sprintf(format, args...), Status: "error",
		Evidence: text.Clip(strings.ReplaceAll(evidence, "\n", " "), maxEvidence), Line: line,
	}
}

// warned returns a finding that does not affect whether a skill is ready.
func warned(name string, line int, evidence, format string, args ...any) Finding {
	f := failed(name, line, evidence, format, args...)
	f.Passed, f.Status = true, "warning"
	return f
}

func specFrontmatter(s *skill.Skill) Finding {
	const name = "spec-frontmatter"
	if s.Problem != nil {
		return failed(name, s.ProblemLine, "", "%v", s.Problem)
	}
	for _, key := range []string{"name", "description"} {
		if s.Value(key) == nil {
			return failed(name, 1, "", "the frontmatter has no %s", key)
		}
	}
	return passed(name, "name and description exist")
}

func specAllowed(s *skill.Skill) Finding {
	const name = "spec-allowed-fields"
	for _, key := range s.Keys() {
		if !slices.Contains(skill.Keys, key) {
			return failed(name, s.Line(key), key, "key %q is not in the specification; move it to metadata", key)
		}
	}
	return passed(name, "all keys are in the specification")
}

func specName(s *skill.Skill) Finding {
	const name = "spec-name"
	switch {
	case s.Name == "":
		return failed(name, s.Line("name"), "", "name must be a non-empty text")
	case utf8.RuneCountInString(s.Name) > maxName:
		return failed(name, s.Line("name"), s.Name, "name has %d characters; the limit is %d", utf8.RuneCountInString(s.Name), maxName)
	case !validName().MatchString(s.Name):
		return failed(name, s.Line("name"), s.Name, "name must consist of lower-case letters and digits, in words separated by single dashes")
	}
	return passed(name, "name is valid")
}

func specDir(s *skill.Skill) Finding {
	const name = "spec-dir-match"
	if dir := filepath.Base(s.Dir); dir != s.Name {
		return failed(name, s.Line("name"), s.Name, "the folder is named %q; rename the folder or the skill", dir)
	}
	return passed(name, "the folder has the skill's name")
}

func specDescription(s *skill.Skill) Finding {
	const name = "spec-description"
	n := utf8.RuneCountInString(s.Description)
	switch {
	case strings.TrimSpace(s.Description) == "":
		return failed(name, s.Line("description"), "", "description must be a non-empty text")
	case n > maxDescription:
		return failed(name, s.Line("description"), s.Description, "description has %d characters; the limit is %d", n, maxDescription)
	}
	return passed(name, fmt.Sprintf("description has %d of %d characters", n, maxDescription))
}

func specSecurity(s *skill.Skill) Finding {
	const name = "spec-security"
	for _, prefix := range []string{"claude-", "anthropic-"} {
		if strings.HasPrefix(s.Name, prefix) {
			return failed(name, s.Line("name"), s.Name, "names that start with %q are reserved", prefix)
		}
	}
	for _, key := range s.Keys() {
		if found := findMarkup(s.Value(key), 0); found != "" {
			return failed(name, s.Line(key), found, "%s contains < or >, which can look like markup in a prompt", key)
		}
	}
	return passed(name, "no markup, and the name is not reserved")
}

// findMarkup returns the first text below a node that contains < or >.
func findMarkup(n *yaml.Node, depth int) string {
	if n == nil || depth > decode.MaxDepth {
		return ""
	}
	if n.Kind == yaml.ScalarNode && strings.ContainsAny(n.Value, "<>") {
		return n.Value
	}
	for _, child := range n.Content {
		if found := findMarkup(child, depth+1); found != "" {
			return found
		}
	}
	return ""
}

func specCompatibility(s *skill.Skill) Finding {
	const name = "spec-compatibility"
	n := s.Value("compatibility")
	switch {
	case n == nil:
		return passed(name, "compatibility is absent")
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && utf8.RuneCountInString(n.Value) <= maxCompatibility:
		return passed(name, "compatibility is a text")
	case n.Kind != yaml.MappingNode:
		return failed(name, s.Line("compatibility"), n.Value,
			"compatibility must be a text of at most %d characters, or a map of texts", maxCompatibility)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := decode.Follow(n.Content[i+1]); v == nil || v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
			return failed(name, n.Content[i].Line+1, n.Content[i].Value, "compatibility.%s must be a text", n.Content[i].Value)
		}
	}
	return passed(name, "compatibility is a map of texts")
}

// checkValue always passes; it warns about a missing key.
func checkValue(s *skill.Skill, name, key string, n *yaml.Node) Finding {
	if n == nil || decode.IsNull(n) {
		return warned(name, s.Line("metadata"), "", "%s is missing", key)
	}
	return passed(name, key+" exists")
}

// MCP rates how a skill documents its use of MCP servers.
type MCP struct {
	Score  int      `json:"score"`
	Total  int      `json:"total"`
	Issues []string `json:"issues"`
}

// builtinTools are names of agents' own tools.
var builtinTools = []string{"bash", "edit", "fetch", "glob", "grep", "read", "search", "shell", "task", "view", "web", "write"}

// mcpOf returns nil if the description contains no INVOKES:.
func mcpOf(s *skill.Skill) *MCP {
	if !contains(s.Description, "invokes:") {
		return nil
	}
	m := &MCP{Total: 4, Issues: []string{}}
	check := func(ok bool, issue string) {
		if ok {
			m.Score++
		} else {
			m.Issues = append(m.Issues, issue)
		}
	}
	table := false
	skill.Prose(s.Body, func(_ int, line string) {
		table = table || strings.HasPrefix(strings.TrimSpace(line), "|") && contains(line, "tool", "command")
	})
	check(table, "no table lists the tools that the skill uses")
	check(contains(s.Body, "prerequisite", "requirements", "requires"), "no section Prerequisites describes what to install or configure")
	check(contains(s.Body, "fallback", "cli", "without mcp", "if the server is not"),
		"no fallback, such as a CLI, is described for when the server is missing")
	check(!slices.Contains(builtinTools, s.Name), fmt.Sprintf("name %q is also the name of an agent's tool", s.Name))
	return m
}
