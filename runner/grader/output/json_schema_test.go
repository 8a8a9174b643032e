package output

import (
	"strings"
	"testing"

	"waza/runner/grader/internal/gradertest"
	"waza/runner/grader/internal/match"
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
	gradertest.RunCases(t, "json_schema", []gradertest.Case{
		{
			"output of a remote agent", "schema: {type: object, properties: {a: {type: integer}}, required: [a]}",
			nil, gradertest.Subject(`{"a":1}`), gradertest.Passes(),
		},
		{"falsy output", "schema: {enum: [0, false, null]}", nil, gradertest.Subject(`0`), gradertest.Passes()},
		{"valid", schema, nil, gradertest.Subject(good), gradertest.Passes()},
		{"in a fence", schema, nil, gradertest.Subject("```json\n" + good + "\n```\n"), gradertest.Passes()},
		{"in a fence of tildes", schema, nil, gradertest.Subject("~~~~\n" + good + "\n~~~~"), gradertest.Passes()},
		{
			"prose around it", schema, nil, gradertest.Subject("Here:\n```json\n" + good + "\n```\n"),
			gradertest.Scores(0, "not one JSON text", "line 1, column 1"),
		},
		{"two texts", schema, nil, gradertest.Subject(good + good), gradertest.Scores(0, "not one JSON text")},
		{"cut off", schema, nil, gradertest.Subject(`{"status": `), gradertest.Scores(0, "not one JSON text: unexpected end")},
		{"empty", schema, nil, gradertest.Subject(""), gradertest.Scores(0, "not one JSON text", "output: (nothing)")},
		{"places", schema, nil, gradertest.Subject(`{"status": "maybe", "data": [{"n": 1}, {"n": 0}, {"n": 1.5}]}`),
			gradertest.Scores(0, "/status: ", "/data/1/n: ", "/data/2/n: ")},
		{"missing", schema, nil, gradertest.Subject(`{}`), gradertest.Scores(0, "(root): ")},
		{"file", "schema_file: schemas/a.json", files, gradertest.Subject(`{"x": "y"}`), gradertest.Passes()},
		{"file and its reference", "schema_file: schemas/a.json", files, gradertest.Subject(`{"x": 1}`), gradertest.Scores(0, "/x: ")},
		{"deep", schema, nil, gradertest.Subject(strings.Repeat("[", 1_000_000)), gradertest.Scores(0, "not one JSON text")},
		{"large number", "schema: {type: integer}", nil, gradertest.Subject("123456789012345678901234567890"), gradertest.Passes()},
	})
}

func TestJSONSchemaOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "json_schema", []gradertest.OptionCase{
		{"well", "schema: {type: object}", "", nil},
		{"nothing", "{}", "checks-nothing: give schema or schema_file", nil},
		{"empty schema", "schema: {}", "checks-nothing: schema is empty", nil},
		{"bad type", "schema: {type: objekt}", "bad-schema: /type", nil},
		{"bad pattern", "schema: {pattern: '('}", "bad-schema: schema", nil},
		{"missing file", "schema_file: none.json", "missing-file: no such file: none.json", nil},
		{"not JSON", "schema_file: s.json", "bad-schema: s.json", map[string]string{"s.json": "{"}},
		{"network", "schema: {$ref: 'https://example.com/s.json'}", "bad-schema: schemas cannot come from the network", nil},
		{"missing reference", "schema_file: s.json", "bad-schema: s.json", map[string]string{"s.json": `{"$ref": "gone.json"}`}},
		{"both", "schema: {type: object}\nschema_file: s.json", "no-effect: no effect because schema is set", map[string]string{"s.json": "{}"}},
	})
}

func FuzzStripFence(f *testing.F) {
	for _, text := range []string{
		"", "```", "```json\n{}\n```", "~~~\n1\n~~~", "````\n```\n````", "```\n```", "a\n```\n1\n```",
		"```\r\n1\r\n```\r\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := match.StripFence(text)
		if !strings.Contains(text, got) {
			t.Fatalf("%q is not part of %q", got, text)
		}
		if strings.ContainsAny(text, "`~") || text == "" {
			return
		}
		if got != text {
			t.Fatalf("%q became %q", text, got)
		}
		body := strings.TrimRight(text, "\r\n") // the content of a fence has no final line end
		if fenced := match.StripFence("```json\n" + text + "\n```"); fenced != body {
			t.Fatalf("%q came back as %q", body, fenced)
		}
	})
}
