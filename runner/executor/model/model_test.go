package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-secret-0123456789"

// server answers chat completions with the deltas that answer returns for each request. The last
// delta has the finish reason stop.
type server struct {
	answer func(w http.ResponseWriter, n int) []string

	mu     sync.Mutex // guards bodies
	bodies []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	n := len(s.bodies)
	s.mu.Unlock()
	deltas := s.answer(w, n)
	for i, d := range deltas {
		finish := "null"
		if i == len(deltas)-1 {
			finish = `"stop"`
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", d, finish)
	}
	if deltas != nil {
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\ndata: [DONE]\n\n")
	}
}

func says(text string) string {
	b, _ := json.Marshal(map[string]string{"content": text})
	return string(b)
}

func calls(name, args string) string {
	b, _ := json.Marshal(map[string]any{"tool_calls": []any{map[string]any{
		"index": 0, "id": "c-" + name, "function": map[string]string{"name": name, "arguments": args},
	}}})
	return string(b)
}

// setup opens the executor for a suite with the given config lines.
func setup(t *testing.T, s *server, config string) (executor.Executor, *eval.Suite, error) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "skills", "poet"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "skills", "poet", "SKILL.md"),
		[]byte("---\nname: poet\ndescription: >\n  writes poems\nlicense: MIT\n---\n# Rhyme\n"), 0o600))
	text := "name: s\nconfig:\n  executor: openai\n  model: gpt-4o\n  base_url: " + srv.URL + "/v1\n  skill_directories: [skills]\n" + config +
		"tasks:\n  - id: t\n    prompt: do it\n"
	path := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	suite, diagnostics, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{OpenAI.Kind, Anthropic.Kind}}})
	require.NoError(t, err)
	require.Empty(t, diagnostics.Errors())
	pool := provider.NewPool(provider.PoolOptions{Getenv: func(name string) string {
		return map[string]string{"OPENAI_API_KEY": key}[name]
	}})
	t.Cleanup(pool.Close)
	e, err := OpenAI.Open(context.Background(), executor.Settings{
		Suite: suite, Options: suite.ExecutorOptions["openai"], Model: suite.Config.Model, Workers: 1, Providers: pool,
	})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
	}
	return e, suite, err
}

func trial(t *testing.T, suite *eval.Suite, followUps ...string) *executor.Trial {
	dir := t.TempDir()
	return &executor.Trial{
		Order: &record.Order{Suite: suite, Task: suite.Tasks[0], Num: 1}, Prompt: "do it", FollowUps: followUps,
		Dir:        func() (string, error) { return dir, nil },
		Expand:     func(s string) string { return strings.ReplaceAll(s, "{{city}}", "Oslo") },
		Transcript: executor.NewTranscript(), Logf: func(_, format string, args ...any) { t.Logf(format, args...) },
	}
}

// TestConversation checks what a conversation with tools and a follow-up sends, records and
// measures.
func TestConversation(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ http.ResponseWriter, n int) []string {
		switch n {
		case 1:
			return []string{says("I look. "), calls("weather", `{"city":"Oslo"}`)}
		case 2:
			return []string{calls("unknown", `{}`), calls("weather", `{oops`)}
		case 3:
			return []string{says("It is "), says("cold; my key is " + key)}
		}
		return []string{says("You are welcome.")}
	}}
	e, suite, err := setup(t, s, `
  params: {temperature: 0}
  system_prompt: You live in {{city}}.
  tools:
    - {name: weather, description: reports, parameters: {type: object}, result: {in: "{{city}}", celsius: -3}}
`)
	require.NoError(t, err)
	tr := trial(t, suite, "thanks")
	out, err := e.Execute(context.Background(), tr)
	require.NoError(t, err)
	require.Equal(t, "You are welcome.", out.Output)
	require.Equal(t, int64(40), out.Usage.InputTokens)
	require.Equal(t, int64(20), out.Usage.OutputTokens)
	require.Positive(t, out.Usage.CostUSD)
	require.Equal(t, 4, out.Speed.Requests)
	require.Positive(t, out.Speed.FirstTokenMS)

	entries := tr.Transcript.Close()
	var got []string
	for _, e := range entries {
		if e.Tool != nil {
			got = append(got, fmt.Sprintf("%s %s %s %s", e.Tool.Name, e.Tool.Status, e.Tool.Arguments, e.Tool.Result))
			continue
		}
		got = append(got, e.Role+": "+e.Text)
	}
	require.Equal(t, []string{
		"user: do it", "assistant: I look. ", `weather completed {"city":"Oslo"} {"celsius":-3,"in":"{{city}}"}`,
		`unknown failed {} "error: there is no tool \"unknown\""`,
		`weather failed "{oops" "error: the arguments are not a JSON object"`,
		"assistant: It is cold; my key is [redacted]", "user: thanks", "assistant: You are welcome.",
	}, got)

	var first struct {
		Messages []struct{ Role, Content string }
		Tools    []any
	}
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &first))
	require.Equal(t, "system", first.Messages[0].Role)
	require.Contains(t, first.Messages[0].Content, "You live in Oslo.")
	require.Contains(t, first.Messages[0].Content, "# Rhyme")
	require.Contains(t, first.Messages[0].Content, "writes poems")
	require.NotContains(t, first.Messages[0].Content, "MIT")
	require.Len(t, first.Tools, 1)
	require.Contains(t, s.bodies[3], "thanks")
	require.Contains(t, s.bodies[3], "It is cold", "the follow-up is asked in the same conversation")
}

func TestSkillsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(http.ResponseWriter, int) []string { return []string{says("ok")} }}
	e, suite, err := setup(t, s, "  inject_skill_body: false\n")
	require.NoError(t, err)
	_, err = e.Execute(context.Background(), trial(t, suite))
	require.NoError(t, err)
	require.NotContains(t, s.bodies[0], "Rhyme")
}

// The system prompt contains the suite's instruction files before the skills.
func TestInstructionFiles(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(http.ResponseWriter, int) []string { return []string{says("ok")} }}
	e, suite, err := setup(t, s, "  instruction_files: [skills/poet/rules.md]\n")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(suite.Dir, "skills", "poet", "rules.md"), []byte("Be brief."), 0o600))
	_, err = e.Execute(context.Background(), trial(t, suite))
	require.EqualError(t, err, "config.instruction_files: skills/poet/rules.md: no such file", "the suite was loaded without it")
	require.True(t, executor.IsPermanent(err))
	found := *suite
	found.Instructions = []eval.InstructionFile{{Name: "rules.md", Path: filepath.Join(suite.Dir, "skills", "poet", "rules.md")}}
	e, err = OpenAI.Open(context.Background(), executor.Settings{Suite: &found, Options: suite.ExecutorOptions["openai"], Model: "gpt-4o"})
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Execute(context.Background(), trial(t, &found))
	require.NoError(t, err)
	var body struct{ Messages []struct{ Content string } }
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &body))
	require.Regexp(t, `(?s)Be brief\..*You have the skill`, body.Messages[0].Content)
}

// A model that calls tools forever is stopped. The trial is graded, because this is a weakness
// of the model.
func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(http.ResponseWriter, int) []string { return []string{calls("again", "{}")} }}
	e, suite, err := setup(t, s, "  max_turns: 3\n  tools: [{name: again}]\n")
	require.NoError(t, err)
	tr := trial(t, suite)
	_, err = e.Execute(context.Background(), tr)
	require.NoError(t, err)
	require.Len(t, s.bodies, 3)
	entries := tr.Transcript.Close()
	require.Contains(t, entries[len(entries)-1].Text, "stopped after 3 answers")
}

func TestFilesAreShown(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(http.ResponseWriter, int) []string { return []string{says("ok")} }}
	e, suite, err := setup(t, s, "")
	require.NoError(t, err)
	tr := trial(t, suite)
	dir, err := tr.Dir()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte("```go\ncode\n```\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.bin"), []byte{0, 1, 2}, 0o600))
	task := *suite.Tasks[0]
	task.Inputs.Files = []eval.InputFile{{Path: "a.md"}, {Path: "b.bin"}, {Path: "gone"}}
	tr.Task = &task
	_, err = e.Execute(context.Background(), tr)
	require.NoError(t, err)
	var body struct{ Messages []struct{ Content string } }
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &body))
	require.Contains(t, body.Messages[1].Content, "a.md\n````\n```go\ncode\n```\n````\n")
	require.Contains(t, body.Messages[1].Content, "b.bin (3 bytes, not shown)")
	require.Contains(t, body.Messages[1].Content, "gone (cannot be read)")
}

// TestProviderFaults checks the errors of trials whose provider fails.
func TestProviderFaults(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, int) []string {
		return func(w http.ResponseWriter, _ int) []string {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":{"message":"no, %s"}}`, key)
			return nil
		}
	}
	run := func(t *testing.T, s *server) (*executor.Trial, error) {
		e, suite, err := setup(t, s, "")
		require.NoError(t, err)
		tr := trial(t, suite)
		_, err = e.Execute(context.Background(), tr)
		require.Error(t, err)
		entries, jerr := json.Marshal(tr.Transcript.Close())
		require.NoError(t, jerr)
		require.NotContains(t, string(entries)+err.Error(), key)
		require.Contains(t, string(entries), `"type":"error"`)
		return tr, err
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, &server{answer: status(401)})
		require.NotNil(t, executor.AsStop(err))
		require.False(t, executor.AsStop(err).Orderly)
	})
	t.Run("invalid", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, &server{answer: status(404)})
		require.True(t, executor.IsPermanent(err))
	})
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, &server{answer: status(500)})
		require.False(t, executor.IsPermanent(err))
		require.Nil(t, executor.AsStop(err))
	})
}

func TestMissingKeyStopsTheRun(t *testing.T) {
	t.Parallel()
	_, _, err := setup(t, &server{}, "  api_key_env: NOT_SET\n")
	require.NotNil(t, executor.AsStop(err))
	require.ErrorContains(t, err, "$NOT_SET is not set")
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"base_url: 127.0.0.1:8080":                                      "must be an http or https URL",
		"base_url: http://u:p@h/v1":                                     "keys do not belong",
		"api_key_env: sk-abcdef":                                        "looks like a key",
		"params: {messages: []}":                                        "cannot be set: waza sets it itself",
		"params: {response_format: {type: json_object}}":                "only the API of OpenAI has it",
		"tools: [{name: a b}]":                                          "invalid tool name",
		"tools: [{name: a}, {name: a}]":                                 "duplicate tool name",
		"tools: [{name: a, parameters: {type: string}}]":                "must be object",
		"tools: [{name: a, parameters: {type: object, properties: 3}}]": "not a valid JSON Schema",
		"api_key_command: []":                                           "must be a list",
		"max_turns: 0":                                                  "max_turns",
		"max_cost: -1":                                                  "max_cost",
	} {
		path := filepath.Join(t.TempDir(), "eval.yaml")
		require.NoError(t, os.WriteFile(path,
			[]byte("name: s\nconfig:\n  executor: anthropic\n  model: m\n  "+config+"\ntasks:\n  - id: t\n    prompt: p\n"),
			0o600))
		_, diagnostics, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{OpenAI.Kind, Anthropic.Kind}}})
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(diagnostics), want, config)
	}
}

// A suite can set the form of answers, because waza sets it only for judges.
func TestResponseFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: s\nconfig: {executor: openai, model: m, params: {response_format: {type: json_object}}}\n"+
		"tasks: [{id: t, prompt: p, expected: {output_contains: [a]}}]\n"), 0o600))
	_, diagnostics, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{OpenAI.Kind, Anthropic.Kind}}})
	require.NoError(t, err)
	require.Empty(t, diagnostics.Errors())
}
