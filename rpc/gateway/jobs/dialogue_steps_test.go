package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/rpc/gateway/doortest"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// run starts a run in another process: LABEL TRIALS TASK…. serve starts one in the server, and
// serveas starts one there for a user: USER LABEL TRIALS TASK….
func (d *dialogue) run(f []string, _ string)   { d.startRun(d.other, f) }
func (d *dialogue) serve(f []string, _ string) { d.startRun(d.own, f) }
func (d *dialogue) serveAs(f []string, _ string) {
	d.startRun(d.own.View(runner.View{User: f[0]}), f[1:])
}

// suite starts a run of a suite in another process: LABEL YAML. The agent does its trials one
// after the other.
func (d *dialogue) suite(f []string, rest string) {
	_, text, _ := strings.Cut(rest, " ")
	text = strings.ReplaceAll(text, "$server", d.modelServer())
	run := runnertest.Start(d.T, d.other, "-- eval.yaml --\n"+text+"\n", record.Request{})
	d.Names["$"+f[0]] = run.ID()
}

// modelServer returns the address of a server of OpenAI's API. The server reports 5000 input and
// 40 output tokens per request. Request N waits for the step "trial model N", and calls a tool if
// the step is "trial model N calls CALL".
func (d *dialogue) modelServer() string {
	n := 0
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		at := n
		mu.Unlock()
		what := ""
		select {
		case what = <-d.trial("model", at):
		case <-r.Context().Done():
			return
		case <-d.T.Context().Done():
			return
		}
		if what == "breaks" {
			http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
			return
		}
		delta := map[string]any{"content": what}
		if call, ok := strings.CutPrefix(what, "calls "); ok {
			var c record.ToolCall
			if err := json.Unmarshal([]byte(call), &c); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			delta = map[string]any{
				"tool_calls": []any{
					map[string]any{"index": 0, "id": "1", "function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)}},
				},
			}
		}
		text, _ := json.Marshal(delta)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\n", text)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5000,\"completion_tokens\":40,\"total_tokens\":5040}}\n\ndata: [DONE]\n\n")
	}))
	d.T.Cleanup(server.Close)
	return server.URL + "/v1"
}

func (d *dialogue) startRun(r *runner.Runner, f []string) {
	tasks := ""
	for _, id := range f[2:] {
		tasks += "  - {id: " + id + ", prompt: x, graders: [{type: regex, name: good, config: {must_match: [good]}}]}\n"
	}
	suite := "-- eval.yaml --\nname: Weather API Suite\nskill: weather\nconfig: {executor: agent, model: gpt-4o, " +
		"workers: 10, parallel: true, retry_errors: 0, trials_per_task: " + f[1] + "}\ntasks:\n" + tasks
	run := runnertest.Start(d.T, r, suite, record.Request{})
	d.Names["$"+f[0]] = run.ID()
}

// judge starts a run of the kind judge in another process: LABEL TRIALS MODELS TASK…. Commas
// separate the models. A [runnertest.Jury] judges.
func (d *dialogue) judge(f []string, _ string) {
	grader := "{name: fits, type: prompt, config: {prompt: Is it good, base_url: " + d.jury.Serve(d.T) +
		"/v1, api_key_command: echo " + runnertest.SecretKey + "}}"
	suite := "-- eval.yaml --\nname: Answers\nkind: judge\nconfig: {executor: agent, judge_model: judge, models: [" +
		f[2] + "], workers: 1, retry_errors: 0, trials_per_task: " + f[1] + "}\ntasks:\n"
	for _, id := range f[3:] {
		suite += "  - {id: " + id + ", prompt: x, graders: [" + grader + "]}\n"
	}
	d.Names["$"+f[0]] = runnertest.Start(d.T, d.other, suite, record.Request{}).ID()
}

// judgeAnswers lets the judge answer the given number of questions after the trials.
func (d *dialogue) judgeAnswers(f []string, _ string) {
	for range d.Number(f[0]) {
		d.answers <- struct{}{}
	}
}

// doTrial lets the agent do a trial: TASK NUMBER ACTION.
func (d *dialogue) doTrial(f []string, _ string) {
	d.trial(f[0], d.Number(f[1])) <- strings.Join(f[2:], " ")
}

func (d *dialogue) id(label string) string { return fmt.Sprint(d.Names["$"+label]) }

func (d *dialogue) resume(f []string, _ string) {
	_, err := runnertest.Resume(d.T, d.other, d.id(f[0]))
	require.NoError(d.T, err, d.At)
}

// grade regrades a run, which changes its record.
func (d *dialogue) grade(f []string, _ string) {
	h, err := d.other.Catalog().Run(d.id(f[0]))
	require.NoError(d.T, err)
	suite, _, err := eval.Load(h.Record().Suite.Path, eval.Options{Vocabulary: d.other.Planner().Vocabulary()})
	require.NoError(d.T, err)
	ctx, cancel := context.WithTimeout(context.Background(), doortest.Patience)
	defer cancel()
	_, err = d.other.Amender().Grade(ctx, d.id(f[0]), suite, regrade.GradeOptions{})
	require.NoError(d.T, err, d.At)
}

// awaitEnd waits until a run has ended.
func (d *dialogue) awaitEnd(f []string, _ string) {
	ctx, cancel := context.WithTimeout(context.Background(), doortest.Patience)
	defer cancel()
	require.NoError(d.T, d.other.Wait(ctx, d.id(f[0])), d.At)
}

// remove deletes the record of a run, even if the run is active.
func (d *dialogue) remove(f []string, _ string) {
	gone := filepath.Join(d.T.TempDir(), "gone")
	require.NoError(d.T, os.Rename(filepath.Join(d.Dir, "runs", d.id(f[0])), gone))
}

// request sends an HTTP request: TOKEN METHOD PATH STATUS JSON [<- BODY].
func (d *dialogue) request(f []string, rest string) {
	_, rest, _ = strings.Cut(rest, f[3])
	want, body, _ := strings.Cut(strings.TrimSpace(rest), " <- ")
	body = d.Fill(body)
	for _, who := range []string{"owner-refresh", "owner"} {
		body = strings.ReplaceAll(body, "@"+who, d.token(who))
	}
	path := f[2]
	for name, value := range d.Names {
		path = strings.ReplaceAll(path, name, fmt.Sprint(value))
	}
	request, err := http.NewRequestWithContext(d.T.Context(), f[1], "http://"+d.Addr().String()+path, strings.NewReader(body))
	require.NoError(d.T, err)
	if text := d.token(f[0]); text != "" {
		request.Header.Set("Authorization", "Bearer "+text)
	}
	client := &http.Client{Timeout: doortest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(d.T, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(d.T, err)
	require.Equal(d.T, f[3], strconv.Itoa(response.StatusCode), "%s: %s", d.At, data)
	d.Names.Compare(d.T, d.At, want, data)
}

func (d *dialogue) revoke(f []string, _ string) {
	list, err := d.tokens.List(context.Background())
	require.NoError(d.T, err)
	for _, l := range list {
		if l.User == f[0] {
			_, err := d.tokens.Revoke(context.Background(), l.ID)
			require.NoError(d.T, err)
		}
	}
}
