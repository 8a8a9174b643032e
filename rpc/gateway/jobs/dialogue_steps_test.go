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
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// run starts a run in another process, LABEL TRIALS TASK…; serve in the server, and serveas
// for a user, USER LABEL TRIALS TASK….
func (d *dialogue) run(f []string, _ string)   { d.startRun(d.other, f) }
func (d *dialogue) serve(f []string, _ string) { d.startRun(d.own, f) }
func (d *dialogue) serveAs(f []string, _ string) {
	d.startRun(d.own.View(runner.View{User: f[0]}), f[1:])
}

// suite starts a run of a suite in another process, LABEL YAML. The agent does its trials
// one after the other.
func (d *dialogue) suite(f []string, rest string) {
	_, text, _ := strings.Cut(rest, " ")
	text = strings.ReplaceAll(text, "$server", d.modelServer())
	run := runnertest.Start(d.t, d.other, "-- eval.yaml --\n"+text+"\n", record.Request{})
	d.names["$"+f[0]] = run.ID()
}

// modelServer is the address of a server of OpenAI's API. It counts 5000 tokens read and 40
// written for each request, and answers when the dialogue lets "model" do the trial of the
// request's number.
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
		}
		if what == "breaks" {
			http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
			return
		}
		text, _ := json.Marshal(what)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n", text)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5000,\"completion_tokens\":40,\"total_tokens\":5040}}\n\ndata: [DONE]\n\n")
	}))
	d.t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func (d *dialogue) startRun(r *runner.Runner, f []string) {
	tasks := ""
	for _, id := range f[2:] {
		tasks += "  - {id: " + id + ", prompt: x, graders: [{type: regex, name: good, config: {must_match: [good]}}]}\n"
	}
	suite := "-- eval.yaml --\nname: Weather API Suite\nskill: weather\nconfig: {executor: agent, model: gpt-4o, workers: 10, parallel: true, retry_errors: 0, trials_per_task: " + f[1] + "}\ntasks:\n" + tasks
	run := runnertest.Start(d.t, r, suite, record.Request{})
	d.names["$"+f[0]] = run.ID()
}

// judge starts a run of the kind judge in another process, LABEL TRIALS MODELS TASK….
// Models are separated by commas. What the judge says is that of [runnertest.Jury].
func (d *dialogue) judge(f []string, _ string) {
	grader := "{name: fits, type: prompt, config: {prompt: Is it good, base_url: " + d.jury.Serve(d.t) + "/v1, api_key_command: echo " + runnertest.SecretKey + "}}"
	suite := "-- eval.yaml --\nname: Answers\nkind: judge\nconfig: {executor: agent, judge_model: judge, models: [" + f[2] + "], workers: 1, retry_errors: 0, trials_per_task: " + f[1] + "}\ntasks:\n"
	for _, id := range f[3:] {
		suite += "  - {id: " + id + ", prompt: x, graders: [" + grader + "]}\n"
	}
	d.names["$"+f[0]] = runnertest.Start(d.t, d.other, suite, record.Request{}).ID()
}

// judgeAnswers lets the judge answer so many questions after the trials.
func (d *dialogue) judgeAnswers(f []string, _ string) {
	n, err := strconv.Atoi(f[0])
	require.NoError(d.t, err, d.at)
	for range n {
		d.answers <- struct{}{}
	}
}

// does lets the agent do a trial, TASK NUMBER WHAT.
func (d *dialogue) does(f []string, _ string) {
	n, err := strconv.Atoi(f[1])
	require.NoError(d.t, err, d.at)
	d.trial(f[0], n) <- strings.Join(f[2:], " ")
}

func (d *dialogue) id(label string) string { return fmt.Sprint(d.names["$"+label]) }

func (d *dialogue) resume(f []string, _ string) {
	_, err := runnertest.Resume(d.t, d.other, d.id(f[0]))
	require.NoError(d.t, err, d.at)
}

// grade grades a run again, which changes its record.
func (d *dialogue) grade(f []string, _ string) {
	h, err := d.other.Catalog().Run(d.id(f[0]))
	require.NoError(d.t, err)
	suite, _, err := eval.Load(h.Record().Suite.Path, eval.Options{Vocabulary: d.other.Planner().Vocabulary()})
	require.NoError(d.t, err)
	_, err = d.other.Amender().Grade(context.Background(), d.id(f[0]), suite, regrade.GradeOptions{})
	require.NoError(d.t, err, d.at)
}

// isOver waits until a run has ended.
func (d *dialogue) isOver(f []string, _ string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(d.t, d.other.Wait(ctx, d.id(f[0])), d.at)
}

// remove deletes the record of a run, whether it is active or not.
func (d *dialogue) remove(f []string, _ string) {
	gone := filepath.Join(d.t.TempDir(), "gone")
	require.NoError(d.t, os.Rename(filepath.Join(d.dir, "runs", d.id(f[0])), gone))
}

// request sends an HTTP request, TOKEN METHOD PATH STATUS JSON [BODY].
func (d *dialogue) request(f []string, rest string) {
	_, rest, _ = strings.Cut(rest, f[3])
	want, body, _ := strings.Cut(strings.TrimSpace(rest), " <- ")
	body = d.fill(body)
	for _, who := range []string{"owner-refresh", "owner"} {
		body = strings.ReplaceAll(body, "@"+who, d.token(who))
	}
	path := f[2]
	for name, value := range d.names {
		path = strings.ReplaceAll(path, name, fmt.Sprint(value))
	}
	request, err := http.NewRequestWithContext(d.t.Context(), f[1], "http://"+d.addr.String()+path, strings.NewReader(body))
	require.NoError(d.t, err)
	if text := d.token(f[0]); text != "" {
		request.Header.Set("Authorization", "Bearer "+text)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(d.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(d.t, err)
	require.Equal(d.t, f[3], strconv.Itoa(response.StatusCode), "%s: %s", d.at, data)
	d.names.Compare(d.t, d.at, want, data)
}

func (d *dialogue) revoke(f []string, _ string) {
	list, err := d.tokens.List(context.Background())
	require.NoError(d.t, err)
	for _, l := range list {
		if l.User == f[0] {
			_, err := d.tokens.Revoke(context.Background(), l.ID)
			require.NoError(d.t, err)
		}
	}
}

func (d *dialogue) restart([]string, string) {
	d.stop()
	d.start()
}
