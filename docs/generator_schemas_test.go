package docs_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/schemafiles"
)

// compileSchema also validates a schema against the schema of schemas.
func compileSchema(t *testing.T, data []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

// yamlDocument decodes YAML as a JSON document.
func yamlDocument(t *testing.T, text []byte) any {
	t.Helper()
	var doc any
	require.NoError(t, yaml.Unmarshal(text, &doc))
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return out
}

func TestSharedSuitesMatchTheSchema(t *testing.T) {
	t.Parallel()
	root := filepath.Join(repositoryRoot, "..", "shared", "suites")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	suite, task, triggers := compileSchema(t, schemafiles.Suite()), compileSchema(t, schemafiles.Task()), compileSchema(t, schemafiles.TriggerTests())
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == "formats" {
			return fs.SkipDir // suites in formats of other tools
		}
		if err != nil || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s := task
		switch filepath.Base(path) {
		case "eval.yaml":
			s = suite
		case "trigger_tests.yaml":
			s = triggers
		}
		seen++
		require.NoError(t, s.Validate(yamlDocument(t, text)), path)
		return nil
	}))
	require.Greater(t, seen, 20)
}

// textOptions, programOptions, mockOptions and commandOptions are the options of a small vocabulary.
type textOptions struct {
	Contains []string `yaml:"contains" alias:"must_contain"`
}

type programOptions struct {
	Command string `yaml:"command" jsonschema:"required"`
	Mode    string `yaml:"mode" jsonschema:"enum=a,enum=b"`
}

type mockOptions struct {
	Command []string `yaml:"command"`
	Any     anyShape `yaml:"any"`
}

type anyShape struct{ X int }

func (*anyShape) UnmarshalYAML(*yaml.Node) error { return nil }

type commandOptions struct {
	Command string `yaml:"command"`
}

func smallVocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{
		Executors: []eval.Kind{
			{Name: "mock", Options: func() any { return &mockOptions{} }},
			{Name: "command", Options: func() any { return &commandOptions{} }},
			{Name: "acp"},
		},
		Graders: []eval.Kind{
			{Name: "text", Aliases: []string{"keyword"}, Options: func() any { return &textOptions{} }},
			{Name: "program", Options: func() any { return &programOptions{} }},
			{Name: "human"},
		},
	}
}

func TestDocumentsAgainstTheSchema(t *testing.T) {
	t.Parallel()
	suite := compileSchema(t, generateSchemas(t, smallVocabulary())[suiteSchema])
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{"name: x", true},
		{"skill: x", false},
		{"name: x\nversion: 1.0", true},
		{"name: x\nversion: [1]", false},
		{"name: x\ncolour: red", false},
		{"name: x\ngolden: true", false},
		{"name: x\nmcp_mocks: []", true},
		{"name: x\nmcp_mocks: [{name: a, tools: {t: {responses: [{match: {n: 1}, return: [1]}, {match_regex: x, error: no}]}}}]", true},
		{"name: x\nmcp_mocks: [{tools: {}}]", false},
		{"name: x\nconfig: {max_workers: 3, workers: 2}", true},
		{"name: x\nconfig: {trials_per_task: 0}", false},
		{"name: x\nconfig: {executor: mock, any: [{}], command: [a]}", true},
		{"name: x\nconfig: {executor: mock, command: a}", true},
		{"name: x\nconfig: {executor: mock, command: {a: b}}", false},
		{"name: x\nconfig: {executor: other}", false},
		{"name: x\nconfig: {grade_expected: auto}", true},
		{"name: x\nconfig: {grade_expected: true}", true},
		{"name: x\nconfig: {grade_expected: perhaps}", false},
		{"name: x\nmetrics: [{name: a, threshold: 0.5}]", true},
		{"name: x\nmetrics: {a: 0.5, pass_threshold: 1, b: {weight: 2}}", true},
		{"name: x\nmetrics: {a: 5}", false},
		{"name: x\nmetrics: [{threshold: 0.5}]", false},
		{"name: x\nhooks: {before_run: [ls, {command: ls}]}", true},
		{"name: x\nhooks: {before_run: [{comand: ls}]}", false},
		{"name: x\ntasks: a.yaml", true},
		{"name: x\ntasks: [a.yaml, {prompt: hi, files: [a, {path: b, content: c}]}]", true},
		{"name: x\ntasks: [{inputs: {prompt: hi}, expected: {output_contains: [3]}}]", true},
		{"name: x\ntasks: [{promt: hi}]", false},
		{"name: x\nrange: [1, 2]", true},
		{"name: x\nrange: [1]", false},
		{"name: x\ngraders: [{type: text, config: {contains: [a]}}]", true},
		{"name: x\ngraders: [{type: text, contains: [a], weight: 2}]", true},
		{"name: x\ngraders: [{type: keyword, config: {must_contain: [a]}}]", true},
		{"name: x\ngraders: [{type: text, config: {command: a}}]", false},
		{"name: x\ngraders: [{type: text, command: a}]", false},
		{"name: x\ngraders: [{type: program, command: a, config: {mode: b}}]", true},
		{"name: x\ngraders: [{type: program, mode: c}]", false},
		{"name: x\ngraders: [{type: nonsense}]", false},
		{"name: x\ngraders: [{name: a}]", false},
		{"name: x\ngraders: [{type: human, config: {a: b}}]", true},
	} {
		err := suite.Validate(yamlDocument(t, []byte(tt.text)))
		require.Equal(t, tt.ok, err == nil, "%s: %v", tt.text, err)
	}
}

type limits struct {
	// Maximum time of silence of a client.
	Idle pause `yaml:"idle"`
	Most int   `yaml:"most" jsonschema:"minimum=1"`
}

type serverFile struct {
	Limits limits `yaml:"limits"`
}

// pause is a duration that is written as a text.
type pause int

func (p *pause) UnmarshalText([]byte) error  { *p = 1; return nil }
func (p pause) MarshalText() ([]byte, error) { return []byte("1s"), nil }

func TestSchemaOfAStruct(t *testing.T) {
	t.Parallel()
	data := generateSchema(t, "Limits", &serverFile{Limits: limits{Idle: 1, Most: 5}})
	s := compileSchema(t, data)
	require.NoError(t, s.Validate(yamlDocument(t, []byte("limits: {idle: 60s, most: 2}"))))
	for _, wrong := range []string{"limits: {idle: []}", "limits: {most: 0}", "limits: {unknown: 1}", "other: 1"} {
		require.Error(t, s.Validate(yamlDocument(t, []byte(wrong))), wrong)
	}
	require.Contains(t, string(data), `"default": "1s"`)
	require.Contains(t, string(data), `"default": 5`)
}
