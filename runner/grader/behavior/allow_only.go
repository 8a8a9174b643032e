package behavior

import (
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
)

// An AllowedTool is a tool that the agent can call. In YAML it is a map with the key tool, or a
// text, which is short for tool.
type AllowedTool struct {
	// Exact name of the tool, in any letter case, or one of its other names: readFile, fileRead
	// and view mean read; writeFile, fileWrite and edit mean write; runCommand means bash;
	// web_fetch means fetch. The prefixes builtin:, mcp: and custom: are ignored, because
	// transcripts do not record where a tool comes from.
	Tool string `yaml:"tool"`
}

// UnmarshalYAML accepts a map or a text.
func (a *AllowedTool) UnmarshalYAML(n *yaml.Node) error {
	type plain AllowedTool // without this method
	return textOrMap(n, &a.Tool, (*plain)(a), "the name of a tool, or a map with the key tool")
}

// JSONSchemaExtend makes the schema accept a text, too.
func (AllowedTool) JSONSchemaExtend(s *jsonschema.Schema) { orText(s) }

func checkAllowed(c *eval.Check, allowed []AllowedTool) {
	for i, a := range allowed {
		if allowedName(a.Tool) == "" {
			c.Errorf(decode.At("allow_only", i), decode.CodeMissingField, "allow_only[%d]: tool is missing", i)
		}
		if strings.ContainsAny(a.Tool, "*|()^$") {
			c.Warnf(decode.At("allow_only", i), decode.CodeInvalidValue,
				"allow_only[%d]: %q must be an exact name; only expect_tools and reject_tools accept patterns", i,
				a.Tool)
		}
	}
}

// otherToolNames maps other names of tools, in lower case, to the names that allow_only
// compares.
var otherToolNames = map[string]string{
	"readfile": "read", "fileread": "read", "view": "read",
	"writefile": "write", "filewrite": "write", "edit": "write",
	"runcommand": "bash", "web_fetch": "fetch",
}

// allowedName returns the name by which allow_only compares a tool.
func allowedName(tool string) string {
	name := strings.ToLower(strings.TrimSpace(tool))
	for _, origin := range []string{"builtin:", "mcp:", "custom:"} {
		if rest, ok := strings.CutPrefix(name, origin); ok {
			name = rest
			break
		}
	}
	if other, ok := otherToolNames[name]; ok {
		return other
	}
	return name
}

// allowedCheck returns the check that the agent called only allowed tools. A nil list allows all
// tools, an empty list none.
func allowedCheck(allowed []AllowedTool) []behaviorCheck {
	if allowed == nil {
		return nil
	}
	names := map[string]bool{}
	written := make([]string, len(allowed))
	for i, a := range allowed {
		names[allowedName(a.Tool)] = true
		written[i] = a.Tool
	}
	label := "allow_only " + strings.Join(written, ", ")
	if len(allowed) == 0 {
		label = "allow_only no tool"
	}
	return []behaviorCheck{{label: label, count: (*grader.Checklist).Absence, test: func(s *grader.Subject) (string, error) {
		var others []string
		for i := range s.ToolCalls {
			if name := s.ToolCalls[i].Name; !names[allowedName(name)] {
				others = append(others, name)
			}
		}
		switch {
		case len(others) == 0:
			return "", nil
		case len(allowed) == 0:
			return fmt.Sprintf("no tool is allowed; called: %s", grader.ListNames(others)), nil
		}
		return fmt.Sprintf("called tools that are not allowed: %s; allowed: %s", grader.ListNames(others), grader.ListNames(written)), nil
	}}}
}
