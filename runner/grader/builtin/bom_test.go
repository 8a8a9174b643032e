package builtin_test

import (
	"testing"

	"waza/runner/grader/internal/gradertest"
)

// Programs on Windows write a byte order mark before a text. It once made valid JSON "not one
// JSON text", and kept a schema file from being read.
func TestJSONWithByteOrderMark(t *testing.T) {
	t.Parallel()
	const bom = "\ufeff"
	files := map[string]string{
		"a.json": bom + `{"properties": {"x": {"$ref": "b.json#/$defs/x"}}, "required": ["x"]}`,
		"b.json": bom + `{"$defs": {"x": {"type": "string"}}}`,
	}
	config := "schema_file: a.json"
	gradertest.RunCases(t, "json_schema", []gradertest.Case{
		{"alone", config, files, gradertest.Subject(bom + `{"x": "y"}`), gradertest.Passes()},
		{"before a fence", config, files, gradertest.Subject(bom + "```json\n{\"x\": \"y\"}\n```"), gradertest.Passes()},
		{"in a fence", config, files, gradertest.Subject("```json\n" + bom + "{\"x\": \"y\"}\n```"), gradertest.Passes()},
		{"of a text that is not valid", config, files, gradertest.Subject(bom + `{"x": 1}`), gradertest.Scores(0, "/x: ")},
		{"of a text that is not JSON", config, files, gradertest.Subject(bom + `x`), gradertest.Scores(0, "line 1, column 1")},
	})
	gradertest.RunCases(t, "program", []gradertest.Case{{
		"last line of a program", `{command: printf, args: ['\357\273\277{"score": 0.5, "passed": false, "feedback": "meh"}']}`, nil,
		gradertest.Subject("", gradertest.Workspace(t, nil)), gradertest.Scores(0.5, "meh"),
	}})
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{{
		"arguments in a text", "expect_tools: [{tool: bash, args: {command: ls}}]", nil,
		gradertest.Subject("", gradertest.Calling(`bash "\ufeff{\"command\": \"ls\"}"`)), gradertest.Passes(),
	}})
}
