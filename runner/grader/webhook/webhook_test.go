package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestMain(m *testing.M) { gradertest.Main(m, grader.NewRegistry(Kind)) }

// bound builds a webhook grader.
func bound(t *testing.T, address, config string) *grader.Bound {
	t.Helper()
	b, _ := gradertest.Bind(t, "webhook", fmt.Sprintf("url: %q\n%s", address, config), nil)
	return b
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		want         gradertest.Verdict
	}{
		{"passes", `{"pass": true}`, gradertest.Passes()},
		{"passes with a score", `{"pass": true, "score": 0.5, "more": [1]}`, gradertest.Verdict{Score: 0.5, Passed: true}},
		{"passes with a reason", `{"pass": true, "reason": "fine"}`, gradertest.Verdict{Score: 1, Passed: true, Feedback: []string{"fine"}}},
		{"fails", `{"pass": false}`, gradertest.Scores(0, "the webhook returned pass: false")},
		{"fails with a score", `{"pass": false, "score": 0.9, "reason": " not yet "}`, gradertest.Scores(0.9, "not yet")},
		{"no pass", `{"score": 1}`, gradertest.Errors("the answer has no pass")},
		{"pass as text", `{"pass": "true"}`, gradertest.Errors(`verdict: "true", expected true or false`)},
		{"score too high", `{"pass": true, "score": 2}`, gradertest.Errors("score: 2, expected a number from 0 to 1")},
		{"no JSON", `fine`, gradertest.Errors(`an object with pass, got "fine"`)},
		{"a list", `[true]`, gradertest.Errors("an object with pass")},
		{"nothing", ``, gradertest.Errors("an object with pass")},
		{"deep", `{"pass": true, "reason": ` + strings.Repeat("[", 200_000), gradertest.Errors("an object with pass")},
		{"long", `{"pass": true, "reason": "` + strings.Repeat("x", maxAnswer) + `"}`, gradertest.Errors("longer than 1 MiB")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.answer) }))
			t.Cleanup(server.Close)
			gradertest.RequireVerdict(t, bound(t, server.URL, ""), gradertest.Subject("x"), c.want)
		})
	}
}

// The server gets the output, or the value of a transform, and the context of the task.
func TestWebhookRequest(t *testing.T) {
	t.Parallel()
	got := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		_ = json.NewDecoder(r.Body).Decode(&body)
		data, _ := json.Marshal(body)
		got <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(data)
		fmt.Fprint(w, `{"pass": true}`)
	}))
	t.Cleanup(server.Close)
	b := bound(t, server.URL+"/grade?key=k", "")
	gradertest.RequireVerdict(t, b, gradertest.Subject("a <b>"), gradertest.Passes())
	require.Equal(t, `POST /grade?key=k application/json {"context":{},"output":"a \u003cb\u003e"}`, <-got)
	gradertest.RequireVerdict(t, b, gradertest.Subject("ignored", func(s *grader.Subject) {
		s.Value = []byte(`{"a": [1]}`)
		s.Task = &eval.Task{ID: "t"}
		s.Task.Inputs.Context = map[string]any{"vars": map[string]any{"x": 1}}
	}), gradertest.Passes())
	require.Equal(t, `POST /grade?key=k application/json {"context":{"vars":{"x":1}},"output":{"a":[1]}}`, <-got)
}

// Faults are errors, and contain no part of the address that can be secret. Those that can pass are tried again.
func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status []int // of the answers, in order
		want   gradertest.Verdict
		tries  int
	}{
		{"busy", []int{503, 429, 200}, gradertest.Passes(), 3},
		{"broken", []int{500, 500, 500, 200}, gradertest.Errors("status 500 Internal Server Error"), 3},
		{"refused", []int{401, 200}, gradertest.Errors("status 401 Unauthorized"), 1},
		{"moved", []int{307, 200}, gradertest.Errors("waza does not follow redirects"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan int, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n := len(asked)
				asked <- n
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status[n])
				fmt.Fprint(w, `{"pass": true}`)
			}))
			t.Cleanup(server.Close)
			address := strings.Replace(server.URL, "http://", "http://me:s3cret@", 1) + "/s3cret?key=s3cret"
			grade := gradertest.RequireVerdict(t, bound(t, address, ""), gradertest.Subject("x"), c.want)
			require.Len(t, asked, c.tries)
			require.NotContains(t, grade.Error, "s3cret")
		})
	}
	server := httptest.NewServer(nil)
	server.Close()
	grade := gradertest.RequireVerdict(t, bound(t, server.URL+"/s3cret", ""), gradertest.Subject("x"), gradertest.Errors("connection refused"))
	require.NotContains(t, grade.Error, "s3cret")

	done := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(done) })
	gradertest.RequireVerdict(t, bound(t, slow.URL, "timeout: 0.02"), gradertest.Subject("x"), gradertest.Errors("no answer within 20ms"))
}

func TestWebhookOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "webhook", []gradertest.OptionCase{
		{"well", "url: https://example.com/grade", "", nil},
		{"nothing", "timeout: 1", "missing-field: url is missing", nil},
		{"no address", "url: example.com", "invalid-value: url must be an http or https address", nil},
		{"file", "url: file:///etc/passwd", "invalid-value: url must be an http or https address", nil},
		{"no time", "url: http://localhost\ntimeout: 0", "invalid-value: timeout must be", nil},
	})
}

// Every answer of a server leads to a score from 0 to 1, or to an error.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{`{"pass": true, "score": 0.5, "reason": "r"}`, `{"pass": false}`, `{"pass": 1}`, `[]`, `{"pass": true, "pass": false}`} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		score, err := scoreIn(answer)
		if err == nil {
			require.True(t, score.Score >= 0 && score.Score <= 1)
			require.True(t, score.Passed || score.Feedback != "")
		}
	})
}
