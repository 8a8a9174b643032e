package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader/internal/gradertest"
)

// A caller is a model that answers with calls: lines NAME ARGUMENTS, and other lines as text.
// answer gets the number of the request, from 1, and the text of the brief.
type caller struct {
	answer func(n int, brief string) string

	mu       sync.Mutex // guards the fields below
	n        int
	requests []string
}

func (c *caller) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var req struct {
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.n++
	n := c.n
	c.requests = append(c.requests, string(body))
	c.mu.Unlock()
	delta, said := map[string]any{}, []string{}
	var calls []any
	for line := range strings.Lines(c.answer(n, req.Messages[1].Content)) {
		name, args, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && strings.HasPrefix(args, "{") {
			calls = append(calls, map[string]any{
				"index": len(calls), "id": fmt.Sprintf("c%d", len(calls)),
				"function": map[string]any{"name": name, "arguments": args},
			})
		} else {
			said = append(said, strings.TrimSpace(line))
		}
	}
	delta["content"] = strings.Join(said, "\n")
	if calls != nil {
		delta["tool_calls"] = calls
	}
	chunk, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": "stop"}}})
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	fmt.Fprintf(w, "data: %s\n\n", chunk)
	res := w.Result()
	res.Request = r
	return res, nil
}

// script returns a model that gives one answer after the other, and then repeats the last.
func script(answers ...string) *caller {
	return &caller{answer: func(n int, _ string) string { return answers[min(n, len(answers))-1] }}
}

const fieldRubric = "prompt: Call set_waza_grade_pass or set_waza_grade_fail for each criterion.\n"

func TestJudgesByCriteria(t *testing.T) {
	t.Parallel()
	const pass, fail = `set_waza_grade_pass {"description":"greets","reason":"it ` +
		`says hello"}`, `set_waza_grade_fail {"description":"short","reason":"it has 40 lines"}`
	for _, tc := range []struct {
		name   string
		judge  *caller
		config string
		asked  int
		want   gradertest.Verdict
	}{
		{"all pass", script(pass+"\n"+pass, "done"), fieldRubric, 2, gradertest.Passes()},
		{"one call per turn", script(pass, pass, pass, "done"), fieldRubric, 4, gradertest.Passes()},
		{
			"some fail", script(pass+"\n"+pass+"\n"+fail+"\n"+pass, "done"), fieldRubric, 2,
			gradertest.Scores(0.75, "fail: short: it has 40 lines"),
		},
		{
			"all fail", script(fail+"\n"+fail, "done"), fieldRubric, 2,
			gradertest.Scores(0, "fail: short: it has 40 lines;fail: short: it has 40 lines"),
		},
		{"without texts", script(`set_waza_grade_fail {}`, ""), fieldRubric, 2, gradertest.Scores(0, "fail")},
		{
			"threshold", script(pass+"\n"+pass+"\n"+fail, "done"), fieldRubric + "threshold: 0.6\n", 2,
			gradertest.Verdict{Score: 2.0 / 3, Passed: true},
		},
		{
			"never called", script("It is fine."), fieldRubric, 2,
			gradertest.Scores(0, "asked twice", "set_waza_grade_pass nor set_waza_grade_fail", "It is fine."),
		},
		{"called when asked again", script("Fine.", pass, "done"), fieldRubric, 3, gradertest.Passes()},
		{
			"JSON when asked again",
			script("Fine.", "```json\n{\"criteria\":[{\"description\":\"greets\",\"passed\":true,\"reason\":\"r\"},{\"description\":\"d\",\"passed\":false,\"reason\":\"r\"}]}\n```"),
			fieldRubric, 2, gradertest.Scores(0.5, "fail: d: r"),
		},
		{
			"JSON at first does not count",
			script(`{"criteria":[{"description":"a","passed":false}]}`, pass, "done"), fieldRubric, 3,
			gradertest.Passes(),
		},
		{"other tools", script(`bash {"command":"ls"}`, pass, "done"), fieldRubric, 3, gradertest.Passes()},
		{"bad arguments", script(`set_waza_grade_fail {"reason":7}`, pass, "done"), fieldRubric, 3, gradertest.Passes()},
		{"endless", script(pass), fieldRubric, maxTurns, gradertest.Passes()},
		{
			"structured output",
			script(`{"criteria":[{"description":"a","passed":true,"reason":""},{"description":"b","passed":false,"reason":"no"}]}`),
			fieldRubric + "answer: json_schema\n", 1, gradertest.Scores(0.5, "fail: b: no"),
		},
		{
			"structured output without a verdict", script(`{"criteria":[{"description":"a"}]}`),
			fieldRubric + "answer: json_schema\n", 2, gradertest.Errors("criteria[0]: passed is missing"),
		},
		{"built-in rubric", script(pass, "done"), "rubric: groundedness\n", 2, gradertest.Passes()},
		{
			"one verdict", script(`submit_verdict {"score":0.5,"passed":true,"reason":"r"}`),
			"rubric: Is it good?\n", 1, gradertest.Verdict{Score: 0.5, Passed: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			gradertest.RequireVerdict(t, judged(t, tc.judge, tc.config, nil), gradertest.Subject("hello"), tc.want)
			require.Equal(t, tc.asked, tc.judge.n)
		})
	}
}

// The details contain the fields of other tools beside our own.
func TestDetailsOfCriteria(t *testing.T) {
	t.Parallel()
	j := script(`set_waza_grade_pass {"description":"greets","reason":"hello"}`+"\n"+`set_waza_grade_fail {"description":"short"}`,
		"two criteria")
	res, err := judged(t, j, fieldRubric, nil).Grade(context.Background(), gradertest.Subject("x"))
	require.NoError(t, err)
	raw, err := json.Marshal(res.Details)
	require.NoError(t, err)
	var d map[string]any
	require.NoError(t, json.Unmarshal(raw, &d))
	require.Equal(t, []any{"pass: greets: hello"}, d["passes"])
	require.Equal(t, []any{"fail: short"}, d["failures"])
	require.Equal(t, "two criteria", d["response"])
	require.Equal(t, "Call set_waza_grade_pass or set_waza_grade_fail for each criterion.", d["prompt"])
	require.NotContains(t, d, "rubric")
	require.Contains(t, j.requests[0], `"name":"set_waza_grade_fail"`)
	require.NotContains(t, j.requests[0], "submit_verdict")
}

// A judge that never ends its list fills neither the memory nor the record.
func TestAttackEndlessCriteria(t *testing.T) {
	t.Parallel()
	call := `set_waza_grade_fail {"description":"` + strings.Repeat("d", 200) + `"}` + "\n"
	all := strings.Repeat(call, 50)
	j := script(all, all, all, all, all, "done")
	res, err := judged(t, j, fieldRubric, nil).Grade(context.Background(), gradertest.Subject("x"))
	require.NoError(t, err)
	d := res.Details.(judgement)
	require.Len(t, d.Failures, maxCriteria)
	require.Contains(t, d.Failures[0], "dddd")
	require.Contains(t, j.requests[5], "no more than 200 criteria are counted")
}

func TestPairwiseOfTheField(t *testing.T) {
	t.Parallel()
	const config = "mode: pairwise\nprompt: Compare, then call set_pairwise_winner.\n"
	better := &caller{answer: func(_ int, brief string) string {
		winner := "B"
		if strings.Index(brief, "GOOD") < strings.Index(brief, "POOR") {
			winner = "A"
		}
		return `set_pairwise_winner {"winner":"` + winner + `","magnitude":"much-better","reasoning":"it is good"}`
	}}
	b := judged(t, better, config, nil)
	gradertest.RequireVerdict(t, b, gradertest.Subject("GOOD", baseline("POOR")), gradertest.Passes())
	gradertest.RequireVerdict(t, b, gradertest.Subject("POOR", baseline("GOOD")), gradertest.Scores(0, "it is good"))
	res, err := b.Grade(context.Background(), gradertest.Subject("GOOD", baseline("POOR")))
	require.NoError(t, err)
	require.Equal(t, []string{"much-better", "much-better"}, res.Details.(judgement).Opinions[0].Magnitudes)
	first := script(`set_pairwise_winner {"winner":"A","magnitude":"slightly-better","reasoning":"r"}`)
	gradertest.RequireVerdict(t, judged(t, first, config, nil), gradertest.Subject("GOOD", baseline("POOR")),
		gradertest.Verdict{Score: 0.5, Passed: true})
}

func TestRubricFiles(t *testing.T) {
	t.Parallel()
	const full = "---\nname: tone\nversion: 1.2\nscale: pass-fail\ndescription: d\ngoldens:\n  - {name: a, input: " +
		"i, output: o, context: {x: 1}, expected: pass}\n---\n\nThe tone is kind.\n"
	const pass = `set_waza_grade_pass {"description":"kind"}`
	for _, tc := range []struct {
		name, file string
		want       *rubricInfo
		says       []string // parts of the brief
		silent     string   // what the brief must not contain
	}{
		{"pass-fail", full, &rubricInfo{"tone", "1.2", "pass-fail", "rubrics/tone.md"}, []string{"Criteria:\n\nThe tone is kind."}, "version:"},
		{
			"line ends of Windows", strings.ReplaceAll(full, "\n", "\r\n"),
			&rubricInfo{"tone", "1.2", "pass-fail", "rubrics/tone.md"}, []string{"The tone is kind."}, "goldens",
		},
		{
			"five", "---\nscale: 1-5\n---\nHow kind is it?\n", &rubricInfo{"tone", "", "1-5", "rubrics/tone.md"},
			[]string{"How kind is it?", "0.25 for 2"}, "---",
		},
		{"no front matter", "The tone is kind.\n", nil, []string{"The tone is kind."}, "0.25 for 2"},
		{"a rule", "---\nThe tone is kind.\n", nil, []string{"---\nThe tone is kind."}, "0.25 for 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := &caller{answer: func(n int, brief string) string {
				switch {
				case n > 1:
					return "done"
				case tc.want == nil || tc.want.Scale != scalePassFail:
					return `submit_verdict {"score":1,"passed":true,"reason":"r"}`
				}
				return pass
			}}
			res, err := judged(t, j, "rubric: rubrics/tone.md\n", map[string]string{"rubrics/tone.md": tc.file}).Grade(context.Background(),
				gradertest.Subject("x"))
			require.NoError(t, err)
			require.True(t, res.Passed)
			require.Equal(t, tc.want, res.Details.(judgement).Rubric)
			var req struct{ Messages []struct{ Content string } }
			require.NoError(t, json.Unmarshal([]byte(j.requests[0]), &req))
			for _, part := range tc.says {
				require.Contains(t, req.Messages[1].Content, part)
			}
			require.NotContains(t, req.Messages[1].Content, tc.silent)
		})
	}
}

func TestBuiltinRubrics(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"groundedness", "helpfulness", "instruction-following", "refusal-correctness", "tool-use-appropriateness"},
		Rubrics())
	docs, err := os.ReadFile("../../../docs/graders.md")
	require.NoError(t, err)
	for _, name := range Rubrics() {
		r, ok := builtinRubric(name)
		require.True(t, ok)
		require.Equal(t, &rubricInfo{name, "1", scalePassFail, sourceBuiltin}, r.info)
		require.NotContains(t, r.text, "---")
		require.Contains(t, string(docs), name, "docs/graders.md lists the built-in rubrics")
	}
	_, ok := builtinRubric("../rubrics/helpfulness")
	require.False(t, ok)
}

func TestRubricFindings(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "prompt", []gradertest.OptionCase{
		{"a name that matches no rubric", "rubric: groundednes", "invalid-value: rubric \"groundednes\" is used as a literal text", nil},
		{"a sentence", "rubric: It greets.", "", nil},
		{"a word of the suite's own file", "rubric: tone", "", map[string]string{"tone": "The tone is kind."}},
		{"missing file", "rubric: rubrics/tone.md", "missing-file: rubric: no such file: rubrics/tone.md", nil},
		{
			"unknown scale", "rubric: r.md",
			"invalid-value: r.md: the scale of the rubric must be pass-fail or 1-5, got \"1-10\"",
			map[string]string{"r.md": "---\nscale: 1-10\n---\nx\n"},
		},
		{
			"nothing below", "rubric: r.md",
			"invalid-value: r.md: the rubric has front matter but no criteria below it",
			map[string]string{"r.md": "---\nname: x\n---\n"},
		},
		{
			"broken front matter", "rubric: r.md",
			"invalid-value: r.md: the front matter of the rubric is not valid",
			map[string]string{"r.md": "---\nname: [\n---\nx\n"},
		},
		{"the output without continue_session", fieldRubric, "other-meaning: the judge sees the task, the output", nil},
		{"a session to continue", fieldRubric + "continue_session: true", "other-meaning: continue_session", nil},
	})
}

// Any rubric file is either read or rejected.
func FuzzRubric(f *testing.F) {
	f.Add([]byte("---\nname: a\nscale: 1-5\n---\nx"))
	f.Add([]byte("---\n---\n---"))
	f.Add([]byte("\ufeff---\r\ngoldens: &a [*a]\r\n---\r\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRubric(data, "r.md")
		if err == nil && r.info != nil && (r.text == "" || r.info.Name == "") {
			t.Errorf("%q has neither name nor criteria: %+v", data, r)
		}
	})
}

// A judge's answer that could not be used gave way to an object inside it, or to an example that
// the judge quoted before.
func TestUsableAnswer(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		`I say {"score":0.5,"passed":true}.`:                                      `{"score":0.5,"passed":true}`,
		`For {"score":1,"passed":true} I say {"score":0.1,"passed":false}`:        `{"score":0.1,"passed":false}`,
		`I say {"score":0.5,"passed":true} because of {"a":1}`:                    `{"score":0.5,"passed":true}`,
		`Like {"score":1,"passed":true} but {"score":"0.1","passed":false}`:       "",
		`Like {"score":1,"passed":true} but {"score":NaN,"passed":false}`:         "",
		`{"score":NaN,"was":{"score":1,"passed":true}}`:                           "",
		`{'score': 0.1, 'was': {"score":1,"passed":true}}`:                        "",
		`{"score":<0 to 1>,"passed":<true or false>}: {"score":0,"passed":false}`: `{"score":0,"passed":false}`,
		`{"score":0.1,"score":1,"passed":true}`:                                   "",
		`nothing`:                                                                 "",
	} {
		got := ""
		require.Equal(t, want != "", usable(said, verdictAnswer, func(raw json.RawMessage) error {
			var a judgeAnswer
			if err := json.Unmarshal(raw, &a); err != nil {
				return err
			}
			if !a.Score.Given {
				return errors.New("score is missing")
			}
			got = string(raw)
			return nil
		}), said)
		require.Equal(t, want, got, said)
	}
}

func FuzzJSONObjects(f *testing.F) {
	f.Add(`I say {"criteria":[]} and {"a":{"b":1}} {`)
	f.Add(`{"score": NaN, "was": {"score": 1, "passed": true}}`)
	f.Fuzz(func(t *testing.T, said string) {
		for _, o := range jsonObjects(said, verdictAnswer) {
			if !json.Valid(o) || string(o) != "null" && !strings.Contains(said, string(o)) {
				t.Errorf("%q does not hold %q", said, o)
			}
		}
	})
}
