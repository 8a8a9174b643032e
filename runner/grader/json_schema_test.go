package grader

import (
	"strings"
	"testing"
)

func TestJSONSchema(t *testing.T) {
	t.Parallel()
	schema := `schema:
  type: object
  required: [status, data]
  properties:
    status: {enum: [success, error]}
    data: {type: array, items: {type: object, properties: {n: {type: integer, minimum: 1}}}}
`
	good := `{"status": "success", "data": [{"n": 1}]}`
	files := map[string]string{
		"schemas/a.json": `{"type": "object", "properties": {"x": {"$ref": "b.json#/$defs/x"}}}`,
		"schemas/b.json": `{"$defs": {"x": {"type": "string"}}}`,
	}
	runCases(t, "json_schema", []graderCase{
		{"valid", schema, nil, subject(good), passes()},
		{"in a fence", schema, nil, subject("```json\n" + good + "\n```\n"), passes()},
		{"in a fence of tildes", schema, nil, subject("~~~~\n" + good + "\n~~~~"), passes()},
		{"prose around it", schema, nil, subject("Here:\n```json\n" + good + "\n```\n"), scores(0, "not one JSON text", "line 1, column 1")},
		{"two texts", schema, nil, subject(good + good), scores(0, "not one JSON text")},
		{"cut off", schema, nil, subject(`{"status": `), scores(0, "not one JSON text: it ends too early")},
		{"empty", schema, nil, subject(""), scores(0, "not one JSON text", "output: (nothing)")},
		{"places", schema, nil, subject(`{"status": "maybe", "data": [{"n": 1}, {"n": 0}, {"n": 1.5}]}`),
			scores(0, "/status: ", "/data/1/n: ", "/data/2/n: ")},
		{"missing", schema, nil, subject(`{}`), scores(0, "(root): ")},
		{"file", "schema_file: schemas/a.json", files, subject(`{"x": "y"}`), passes()},
		{"file and its reference", "schema_file: schemas/a.json", files, subject(`{"x": 1}`), scores(0, "/x: ")},
		{"deep", schema, nil, subject(strings.Repeat("[", 1_000_000)), scores(0, "not one JSON text")},
		{"large number", "schema: {type: integer}", nil, subject("123456789012345678901234567890"), passes()},
	})
}

// A byte order mark, which programs of Windows write before a text, made valid
// JSON "not one JSON text", and kept a schema file from being read.
func TestJSONWithByteOrderMark(t *testing.T) {
	t.Parallel()
	const bom = "\ufeff"
	files := map[string]string{
		"a.json": bom + `{"properties": {"x": {"$ref": "b.json#/$defs/x"}}, "required": ["x"]}`,
		"b.json": bom + `{"$defs": {"x": {"type": "string"}}}`,
	}
	config := "schema_file: a.json"
	runCases(t, "json_schema", []graderCase{
		{"alone", config, files, subject(bom + `{"x": "y"}`), passes()},
		{"before a fence", config, files, subject(bom + "```json\n{\"x\": \"y\"}\n```"), passes()},
		{"in a fence", config, files, subject("```json\n" + bom + "{\"x\": \"y\"}\n```"), passes()},
		{"of a text that is not valid", config, files, subject(bom + `{"x": 1}`), scores(0, "/x: ")},
		{"of a text that is not JSON", config, files, subject(bom + `x`), scores(0, "line 1, column 1")},
	})
	runCases(t, "program", []graderCase{{
		"last line of a program", `{command: printf, args: ['\357\273\277{"score": 0.5, "passed": false, "feedback": "meh"}']}`, nil,
		subject("", workspace(t, nil)), scores(0.5, "meh"),
	}})
	runCases(t, "tool_constraint", []graderCase{{
		"arguments in a text", "expect_tools: [{tool: bash, args: {command: ls}}]", nil,
		subject("", calling(`bash "\ufeff{\"command\": \"ls\"}"`)), passes(),
	}})
}

func TestJSONSchemaOptions(t *testing.T) {
	t.Parallel()
	runOptions(t, "json_schema", []optionCase{
		{"well", "schema: {type: object}", "", nil},
		{"nothing", "{}", "checks-nothing: give schema or schema_file", nil},
		{"empty schema", "schema: {}", "checks-nothing: schema is empty", nil},
		{"bad type", "schema: {type: objekt}", "bad-schema: /type", nil},
		{"bad pattern", "schema: {pattern: '('}", "bad-schema: schema", nil},
		{"missing file", "schema_file: none.json", "missing-file: no such file: none.json", nil},
		{"not JSON", "schema_file: s.json", "bad-schema: s.json", map[string]string{"s.json": "{"}},
		{"network", "schema: {$ref: 'https://example.com/s.json'}", "bad-schema: not fetched from the network", nil},
		{"missing reference", "schema_file: s.json", "bad-schema: s.json", map[string]string{"s.json": `{"$ref": "gone.json"}`}},
		{"both", "schema: {type: object}\nschema_file: s.json", "no-effect: no effect beside schema", map[string]string{"s.json": "{}"}},
	})
}

func FuzzStripFence(f *testing.F) {
	for _, text := range []string{"", "```", "```json\n{}\n```", "~~~\n1\n~~~", "````\n```\n````", "```\n```", "a\n```\n1\n```", "```\r\n1\r\n```\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := stripFence(text)
		if !strings.Contains(text, got) {
			t.Fatalf("%q is no part of %q", got, text)
		}
		if strings.ContainsAny(text, "`~") || text == "" {
			return
		}
		if got != text {
			t.Fatalf("%q became %q", text, got)
		}
		body := strings.TrimRight(text, "\r\n") // what a fence encloses has no line end
		if fenced := stripFence("```json\n" + text + "\n```"); fenced != body {
			t.Fatalf("%q came back as %q", body, fenced)
		}
	})
}
