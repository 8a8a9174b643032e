package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/owned"
	"waza/rpc/gateway/store"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// patience is how long a dialogue waits for anything.
const patience = 20 * time.Second

// TestDialogues plays the dialogues of testdata/dialogues, whose README describes their form.
func TestDialogues(t *testing.T) {
	t.Parallel()
	playDialogues(t, doortest.PlayOurs)
}

// TestDialoguesWithNode plays them with clients that are not ours.
func TestDialoguesWithNode(t *testing.T) {
	t.Parallel()
	playDialogues(t, doortest.PlayNode(doortest.NodeModules(t)))
}

func playDialogues(t *testing.T, play func(t *testing.T, happens func(doortest.Event)) doortest.Player) {
	files, err := filepath.Glob("testdata/dialogues/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		var config []byte
		for _, section := range archive.Files {
			if section.Name == "config" {
				config = section.Data
				continue
			}
			config := config
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+section.Name, func(t *testing.T) {
				t.Parallel()
				d := newDialogue(t, config, play)
				defer d.end()
				for i, line := range strings.Split(string(section.Data), "\n") {
					if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
						d.at = fmt.Sprintf("%s: %s: line %d: %s", filepath.Base(file), section.Name, i+1, line)
						d.step(line)
					}
				}
			})
		}
	}
}

// dialogue is a server, a waza process beside it, and the clients of the server.
type dialogue struct {
	t      *testing.T
	at     string // the line that is played
	config jobs.Config
	dir    string
	log    *safeBuffer
	player doortest.Player

	server *jobs.Server
	store  *store.Store
	tokens *token.Issuer
	own    *runner.Runner // of the server
	runs   *owned.Runs
	other  *runner.Runner // of another process
	addr   net.Addr
	stop   func()

	mu     sync.Mutex
	events map[string]chan doortest.Event
	trials map[string]chan string // what the agent is to do, by the id of its case

	jury    *runnertest.Jury
	answers chan struct{} // one for each question that the judge may answer after the trials

	names map[string]any // what $NAME was
	given map[string]string
}

type safeBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func newDialogue(t *testing.T, config []byte, play func(t *testing.T, happens func(doortest.Event)) doortest.Player) *dialogue {
	d := &dialogue{
		t: t, dir: t.TempDir(), log: &safeBuffer{}, config: jobs.Defaults(), events: map[string]chan doortest.Event{},
		answers: make(chan struct{}, 1000), trials: map[string]chan string{}, names: map[string]any{}, given: map[string]string{},
	}
	d.config.Listen = "127.0.0.1:0"
	d.jury = &runnertest.Jury{Before: func(tool, _ string) int {
		if tool == "submit_verdict" {
			return 0
		}
		select {
		case <-d.answers:
			return 0
		case <-t.Context().Done():
			return http.StatusBadRequest
		}
	}}
	decoder := yaml.NewDecoder(bytes.NewReader(config))
	decoder.KnownFields(true)
	if len(bytes.TrimSpace(config)) > 0 {
		require.NoError(t, decoder.Decode(&d.config))
	}
	d.player = play(t, func(e doortest.Event) { d.eventsOf(e.Name) <- e })
	d.other = runnertest.AgentRunner(t, d.dir, d.agent)
	d.start()
	return d
}

// agent does what the dialogue says, when it says so.
func (d *dialogue) agent(ctx context.Context, t *executor.Trial) (string, error) {
	select {
	case what := <-d.trial(t.Task.ID, t.Num):
		word, rest, _ := strings.Cut(what, " ")
		switch word {
		case "calls":
			var call record.ToolCall
			if err := json.Unmarshal([]byte(rest), &call); err != nil {
				return "", err
			}
			t.Transcript.ToolCall(call)
			return "good", nil
		case "breaks":
			return "", errors.New(rest)
		}
		return word, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// trial is where the agent hears what to do.
func (d *dialogue) trial(task string, num int) chan string {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := fmt.Sprintf("%s#%d", task, num)
	if d.trials[id] == nil {
		d.trials[id] = make(chan string, 100)
	}
	return d.trials[id]
}

// start starts a server with the store and the runs of the one before.
func (d *dialogue) start() {
	var err error
	d.store, err = store.Open(d.dir)
	require.NoError(d.t, err)
	d.tokens, err = token.New(context.Background(), d.store)
	require.NoError(d.t, err)
	alerts := board.NewAlerts(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log := slog.New(alerts)
	d.runs, err = owned.Open(context.Background(), store.RunsOf(d.store), d.config.MaxJobs, log)
	require.NoError(d.t, err)
	d.own = runnertest.GatedRunner(d.t, d.dir, d.agent, d.runs)
	b := board.New(board.Options{Runner: d.own, Log: log, Queued: d.runs.Queued, UserOf: func(_ context.Context, run string) (string, error) {
		if user := d.runs.UserOf(run); user != "" {
			return user, nil
		}
		return token.Owner, nil
	}})
	alerts.SendTo(b)
	d.server, err = jobs.New(d.config, jobs.Options{Tokens: d.tokens, Board: b, Log: log})
	require.NoError(d.t, err)
	d.addr, err = d.server.Door().Listen()
	require.NoError(d.t, err)
	d.config.Listen = d.addr.String() // clients come back to the same address
	served := make(chan error, 1)
	go func() { served <- d.server.Door().Serve(context.Background()) }()
	boarding, cancel := context.WithCancel(context.Background())
	var boards sync.WaitGroup
	boards.Go(func() { b.Serve(boarding) })
	boards.Go(func() {
		if err := d.runs.Resume(boarding, d.own); err != nil && boarding.Err() == nil {
			d.t.Error(err)
		}
	})
	d.stop = func() {
		ctx, end := context.WithTimeout(context.Background(), patience)
		defer end()
		require.NoError(d.t, d.own.Close(ctx))
		require.NoError(d.t, d.server.Door().Shutdown(ctx))
		require.NoError(d.t, <-served)
		cancel()
		boards.Wait()
		require.NoError(d.t, d.store.Close())
	}
}

func (d *dialogue) end() {
	d.stop()
	require.NoError(d.t, d.other.Close(context.Background()))
	d.player.End()
	for _, secret := range d.given {
		require.NotContains(d.t, d.log.String(), secret, "tokens are not logged")
	}
	require.NotContains(d.t, d.log.String(), "level=ERROR")
	if d.t.Failed() {
		d.t.Log(d.at)
		d.t.Log(d.log.String())
	}
}

func (d *dialogue) eventsOf(name string) chan doortest.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events[name] == nil {
		d.events[name] = make(chan doortest.Event, 100_000)
	}
	return d.events[name]
}

// next is what happens to a client next.
func (d *dialogue) next(name string) doortest.Event {
	select {
	case e := <-d.eventsOf(name):
		return e
	case <-time.After(patience):
		require.FailNow(d.t, "nothing happens", "%s\n%s", d.at, d.log.String())
		return doortest.Event{}
	}
}

func (d *dialogue) step(line string) {
	if i := strings.IndexAny(line, "<> "); i >= 0 && line[i] != ' ' {
		name, rest := line[:i], strings.TrimSpace(line[i+1:])
		if line[i] == '>' {
			d.player.Play(doortest.Action{Do: "say", Name: name, Text: d.fill(rest)})
		} else {
			d.hear(name, rest)
		}
		return
	}
	fields := strings.Fields(line)
	do, ok := map[string]func(f []string, rest string){
		"connect": d.connect, "drop": d.drop, "binary": d.binary, "large": d.large,
		"run": d.run, "suite": d.suite, "judge": d.judge, "answers": d.judgeAnswers, "serve": d.serve, "serveas": d.serveAs, "trial": d.does, "resume": d.resume, "over": d.isOver, "grade": d.grade, "delete": d.remove,
		"request": d.request, "restart": d.restart, "revoke": d.revoke, "skip": d.skip, "find": d.find,
	}[fields[0]]
	require.True(d.t, ok, "%s: what is %s?", d.at, fields[0])
	_, rest, _ := strings.Cut(line, " ")
	do(fields[1:], rest)
}

// token is a token of a user, or one that is wrong in some way.
func (d *dialogue) token(who string) string {
	if who == "none" {
		return ""
	}
	if text, ok := d.given[who]; ok {
		return text
	}
	user, how, _ := strings.Cut(who, "-")
	grant := token.Grant{User: user}
	switch user {
	case "owner":
		grant.User = ""
	case "admin":
		grant.Role = token.Admin
	}
	switch how {
	case "cli":
		grant.TTL = time.Hour
	case "short":
		grant.TTL = 2 * time.Second
	}
	pair, err := d.tokens.Create(context.Background(), grant)
	require.NoError(d.t, err)
	text := pair.Access
	switch how {
	case "refresh":
		text = pair.Refresh
	case "forged":
		text = text[:len(text)-4] + "AAAA"
	case "malformed":
		text = "geheim"
	case "none": // alg none
		parts := strings.Split(text, ".")
		text = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + "."
	}
	d.given[who] = text
	return text
}

func (d *dialogue) connect(f []string, _ string) {
	query := ""
	if text := d.token(f[1]); text != "" {
		query = "?token=" + text
	}
	d.player.Play(doortest.Action{Do: "connect", Name: f[0], URL: "ws://" + d.addr.String() + "/ws" + query})
	require.Equal(d.t, "open", d.next(f[0]).Event, d.at)
}

func (d *dialogue) drop(f []string, _ string) {
	d.player.Play(doortest.Action{Do: "drop", Name: f[0]})
	for d.next(f[0]).Event != "closed" {
	}
}

func (d *dialogue) binary(f []string, _ string) {
	d.player.Play(doortest.Action{Do: "binary", Name: f[0], Text: "{}"})
}

func (d *dialogue) large(f []string, _ string) {
	n, err := strconv.Atoi(f[1])
	require.NoError(d.t, err, d.at)
	d.player.Play(doortest.Action{Do: "say", Name: f[0], Text: `{"type":"` + strings.Repeat("x", n-11) + `"}`})
}

// skip drops messages up to one of a type, CLIENT TYPE.
func (d *dialogue) skip(f []string, _ string) { d.until(f[0], f[1]) }

// find drops messages before one of a type, CLIENT MESSAGE.
func (d *dialogue) find(f []string, rest string) {
	_, want, _ := strings.Cut(rest, " ")
	var m struct{ Type string }
	require.NoError(d.t, json.Unmarshal([]byte(d.fill(want)), &m), d.at)
	d.compare(want, d.until(f[0], m.Type))
}

func (d *dialogue) until(name, kind string) []byte {
	for {
		e := d.next(name)
		require.Equal(d.t, "message", e.Event, "%s: closed with %d %s", d.at, e.Code, e.Reason)
		var m struct{ Type string }
		require.NoError(d.t, json.Unmarshal([]byte(e.Text), &m), d.at)
		if m.Type == kind {
			return []byte(e.Text)
		}
	}
}

func (d *dialogue) hear(name, want string) {
	e := d.next(name)
	if code, ok := strings.CutPrefix(want, "close "); ok {
		require.Equal(d.t, code, strings.TrimSpace(fmt.Sprint(e.Code, " ", e.Reason)), "%s: %s", d.at, e.Text)
		return
	}
	require.Equal(d.t, "message", e.Event, "%s: closed with %d %s\n%s", d.at, e.Code, e.Reason, d.log)
	d.compare(want, []byte(e.Text))
}

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
	d.compare(want, data)
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

// fill replaces $NAME by what it was.
func (d *dialogue) fill(text string) string {
	for name, value := range d.names {
		text = strings.ReplaceAll(text, name, fmt.Sprint(value))
	}
	return text
}

// compare compares JSON. The strings $time, $ms and $text fit any time, number that is not
// negative and text; other $NAMEs are what they were at first.
func (d *dialogue) compare(want string, data []byte) {
	d.t.Helper()
	var wanted, got any
	require.NoError(d.t, json.Unmarshal([]byte(want), &wanted), d.at)
	require.NoError(d.t, json.Unmarshal(data, &got), "%s: %s", d.at, data)
	require.Empty(d.t, cmp.Diff(d.settle(wanted, got), got), "%s\n%s", d.at, data)
}

// settle replaces the placeholders in want that got fits.
func (d *dialogue) settle(want, got any) any {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for field, value := range w {
			w[field] = d.settle(value, g[field])
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			w[i] = d.settle(w[i], g[i])
		}
	case string:
		text, isText := got.(string)
		number, isNumber := got.(float64)
		switch {
		case w == "$time":
			if _, err := time.Parse(time.RFC3339, text); err == nil {
				return got
			}
		case w == "$text" && isText && text != "", w == "$ms" && isNumber && number >= 0:
			return got
		case strings.HasPrefix(w, "$"):
			if _, ok := d.names[w]; !ok && got != nil {
				d.names[w] = got
			}
			return d.names[w]
		}
	}
	return want
}
