package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load returns a suite with that config.
func load(t *testing.T, config string) (*eval.Suite, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eval.yaml")
	suite := "name: t\nconfig:\n  executor: http\n" + config +
		"\ntasks: [{id: a, prompt: x, inputs: {context: {vars: {word: 'a\"b c', list: [1, {k: v}]}, n: 7}}}]\n"
	require.NoError(t, os.WriteFile(file, []byte(suite), 0o600))
	s, found, err := eval.Load(file, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{Kind.Kind}}})
	require.NoError(t, err)
	return s, fmt.Sprint(found)
}

// execute sends prompts to an API. The key in the environment is sk-secret-0123456789.
func execute(t *testing.T, ctx context.Context, config string, prompts ...string) (executor.Outcome, []record.Entry, error) {
	t.Helper()
	suite, _ := load(t, config)
	e := open(executor.Settings{Suite: suite, Options: suite.ExecutorOptions["http"]}, func(name string) (string, bool) {
		return "sk-secret-0123456789", name == "API_KEY"
	})
	defer e.Close()
	trial := &executor.Trial{
		Order: &record.Order{Suite: suite, Task: suite.Tasks[0], Num: 1}, Attempt: 1, Prompt: prompts[0], FollowUps: prompts[1:],
		Transcript: executor.NewTranscript(), Logf: func(string, string, ...any) {},
		Expand: func(s string) string { return strings.ReplaceAll(s, "{{task_id}}", "a") },
	}
	out, err := e.Execute(ctx, trial)
	return out, trial.Transcript.Close(), err
}

// echo answers with the parts of each request.
func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestRequests(t *testing.T) {
	t.Parallel()
	address := echo(t)
	for name, c := range map[string]struct{ config, want string }{
		"get":     {"  url: ADDRESS/a/{{prompt}}?q={{context.vars.word}}", "GET /a/say%20%22hi%22?q=a%22b%20c   "},
		"query":   {"  url: ADDRESS/?a=1\n  query: {q: '{{prompt}}'}", "GET /?a=1&q=say+%22hi%22   "},
		"map":     {"  url: ADDRESS\n  body: {p: 'to {{prompt}}', n: 1, t: '{{task_id}}', u: '{{none}}'}", `POST / application/json  {"n":1,"p":"to say \"hi\"","t":"a","u":"{{none}}"}`},
		"text":    {"  url: ADDRESS\n  body: 'p={{prompt}}'", `POST / text/plain; charset=utf-8  p=say "hi"`},
		"JSON":    {"  url: ADDRESS\n  method: put\n  body: '{\"p\": \"{{prompt}}\", \"n\": 12345678901234567890}'", `PUT / application/json  {"n":12345678901234567890,"p":"say \"hi\""}`},
		"value":   {"  url: ADDRESS\n  body: '{\"l\": {{context.vars.list}}}'", `POST / application/json  {"l": [1,{"k":"v"}]}`},
		"both":    {"  url: ADDRESS\n  body: '[\"{{prompt}}\", \"{{context.vars.word}}\", [{{context.n}}]]'", `POST / application/json  ["say \"hi\"", "a\"b c", [7]]`},
		"no JSON": {"  url: ADDRESS\n  body: '[x] {{prompt}}'", `POST / text/plain; charset=utf-8  [x] say "hi"`},
		"values":  {"  url: ADDRESS\n  body: ['{{context.vars.list}}', 'l {{context.vars.list}}', '{{context.vars.word}}']", `POST / application/json  [[1,{"k":"v"}],"l [1,{\"k\":\"v\"}]","a\"b c"]`},
		"header":  {"  url: ADDRESS\n  headers: {Authorization: 'Bearer {{env.API_KEY}}', Content-Type: a/b}\n  body: ''", "POST / a/b Bearer sk-secret-0123456789 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, entries, err := execute(t, t.Context(), strings.ReplaceAll(c.config, "ADDRESS", address), `say "hi"`)
			require.NoError(t, err)
			require.Equal(t, c.want, out.Output)
			require.Len(t, entries, 2)
		})
	}
}

// Each follow-up is a request of its own, and the last answer is the output.
func TestFollowUps(t *testing.T) {
	t.Parallel()
	out, entries, err := execute(t, t.Context(), "  url: "+echo(t)+"\n  body: '{{prompt}}'", "one", "two")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(out.Output, "two"))
	require.Len(t, entries, 4)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			fmt.Fprint(w, `{"choices": [{"text": "hi", "n": 1}]}`)
		case "/long":
			_, _ = w.Write(make([]byte, executor.MaxOutputBytes+10))
		case "/endless":
			for w, chunk := w, make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/fault":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "nothing for "+r.Header.Get("X-Api-Key"))
		}
	}))
	t.Cleanup(s.Close)
	const key = "\n  headers: {X-Api-Key: '{{env.API_KEY}}'}"
	for _, c := range []struct {
		config, want, fault string
		permanent           bool
	}{
		{config: "/json\n  answer: choices.0.text", want: "hi"},
		{config: "/json\n  answer: choices.0", want: `{"n":1,"text":"hi"}`},
		{config: "/json\n  answer: choices.1.text", fault: `the response has no "1" of the path choices.1.text`, permanent: true},
		{config: "/none\n  any_status: true", want: "nothing for "},
		{config: "/none\n  any_status: true\n  answer: a", fault: "config.answer: the response is no JSON", permanent: true},
		{config: "/none" + key, fault: "/none: status 404 Not Found: nothing for ", permanent: true},
		{config: "/moved", fault: "waza does not follow redirects", permanent: true},
		{config: "/busy\n  any_status: true", fault: "status 429"},
		{config: "/fault", fault: "status 502 Bad Gateway: (empty)"},
		{config: "/endless", fault: "the response is longer than 64", permanent: true},
		{config: "/\n  headers: {A: '{{env.NONE}}'}", fault: "the environment variable NONE, which config names, is not set", permanent: true},
		{config: "/\n  headers: {A: '{{prompt}}'}", fault: "headers.A has a value with line breaks", permanent: true},
	} {
		t.Run(c.config[:min(len(c.config), 40)], func(t *testing.T) {
			t.Parallel()
			out, _, err := execute(t, t.Context(), "  url: "+s.URL+c.config, "a\nb")
			if c.fault == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, out.Output)
				return
			}
			require.ErrorContains(t, err, c.fault)
			require.NotContains(t, err.Error(), "sk-secret")
			require.Equal(t, c.permanent, executor.IsPermanent(err))
		})
	}
	out, _, err := execute(t, t.Context(), "  url: "+s.URL+"/long", "a")
	require.NoError(t, err)
	require.Len(t, out.Output, executor.MaxOutputBytes)
	require.Equal(t, int64(10), out.OutputDropped)
}

// A request that is too long is not sent, and a server that does not answer is left when the trial ends.
func TestLimits(t *testing.T) {
	t.Parallel()
	_, _, err := execute(t, t.Context(), "  url: http://127.0.0.1:1\n  body: '"+strings.Repeat("{{prompt}}", 20)+"'", strings.Repeat("x", 1<<20))
	require.ErrorContains(t, err, "the request is longer than 16 MiB")

	arrived, done := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(done)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the time is up")
	go func() {
		<-arrived
		cancel(over)
	}()
	_, _, err = execute(t, ctx, "  url: "+s.URL, "x")
	require.ErrorIs(t, err, over)
	<-done
}

// Errors of the network name the host, without the query.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	_, _, err := execute(t, t.Context(), "  url: http://127.0.0.1:1/a?key={{env.API_KEY}}", "x")
	require.ErrorContains(t, err, "GET http://127.0.0.1:1/a: dial tcp")
	require.NotContains(t, err.Error(), "sk-secret")
	require.False(t, executor.IsPermanent(err))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"  url: https://example.com\n  headers: {Authorization: 'Bearer {{env.KEY}}', Accept: a/b}": "1: warning: task",
		"  url: example.com":                                      "url must be an http or https URL",
		"  url: https://me:secret@example.com":                    "url must not contain a password",
		"  url: https://example.com\n  method: 'GET /'":           "method must be a word",
		"  url: https://example.com\n  headers: {'a b': c}":       `"a b" is no name of a header`,
		"  url: https://example.com\n  headers: {X-Api-Key: abc}": "headers.X-Api-Key: keys do not belong in a file",
		"  method: GET": "url is missing",
	} {
		_, found := load(t, config)
		require.Contains(t, found, want, config)
	}
}

// Instructions reach the API by a variable. Keys that do not reach it are reported.
func TestInstructions(t *testing.T) {
	t.Parallel()
	url := echo(t)
	run := func(body string) (string, string) {
		suite, _ := load(t, "  url: "+url+"\n  body: '"+body+"'")
		task := suite.Tasks[0]
		task.Inputs.SystemPrompt, task.Inputs.Files, task.SkillDirectories = `Be "brief".`, []eval.InputFile{{Path: "a"}}, []string{"skills"}
		s := executor.Settings{Suite: suite, Options: suite.ExecutorOptions["http"]}
		e := open(s, os.LookupEnv)
		defer e.Close()
		out, err := e.Execute(t.Context(), &executor.Trial{
			Order: &record.Order{Suite: suite, Task: task, Num: 1}, Attempt: 1, Prompt: "x",
			Transcript: executor.NewTranscript(), Logf: func(string, string, ...any) {}, Expand: func(s string) string { return s },
		})
		require.NoError(t, err)
		return out.Output, fmt.Sprint(Kind.Preflight(t.Context(), s))
	}
	out, found := run(`{"s": "{{ system_prompt }}"}`)
	require.Contains(t, out, `{"s":"Be \"brief\"."}`)
	require.NotContains(t, found, "instruction_files")
	require.Contains(t, found, "skill_directories has no effect with executor http")
	require.Contains(t, found, "inputs.files has no effect with executor http")
	out, found = run(`{}`)
	require.NotContains(t, out, "brief")
	require.Contains(t, found, "instruction_files and inputs.system_prompt have no effect with executor http")
}

func TestVariables(t *testing.T) {
	t.Parallel()
	o := &Options{
		URL: "{{env.BASE}}/a", Headers: map[string]string{"A": "{{env.KEY}} {{env.BASE}}"}, Query: map[string]string{"q": "{{prompt}}"},
		Body: map[string]any{"a": []any{"{{ env.LAST }}"}},
	}
	require.Equal(t, []string{"BASE", "KEY", "LAST"}, o.variables())
	require.Len(t, Kind.Needs(executor.Settings{Options: o}), 3)
}
