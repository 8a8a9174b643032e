package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/door"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/queue"
	"waza/rpc/gateway/store"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// TestDialogues plays the dialogues of testdata/dialogues. The README there describes their
// form.
func TestDialogues(t *testing.T) {
	t.Parallel()
	play(t, doortest.PlayOurs)
}

// TestDialoguesWithNode plays them with the WebSocket clients of the npm package ws.
func TestDialoguesWithNode(t *testing.T) {
	t.Parallel()
	play(t, doortest.PlayNode(doortest.NodeModules(t)))
}

// play plays the dialogues, and reads all messages like the pages of testdata/page.txtar.
func play(t *testing.T, player func(t *testing.T, happens func(doortest.Event)) doortest.Player) {
	table := readPageTable(t)
	t.Cleanup(func() { table.requireAllSeen(t) })
	doortest.Play(t, player, func(d *doortest.Dialogue) doortest.Door { return newDialogue(d, table) })
}

// dialogue is a server, another waza process beside it, and the clients of the server.
type dialogue struct {
	*doortest.Dialogue
	config jobs.Config

	server *jobs.Server
	store  *store.Store
	tokens *token.Issuer
	own    *runner.Runner // runs in the server
	runs   *queue.Runs
	other  *runner.Runner // runs in another process
	stop   func()

	mu     sync.Mutex             // guards trials
	trials map[string]chan string // actions of the agent, by the id of the case

	jury    *runnertest.Jury
	answers chan struct{} // one value for each question that the judge can answer after the trials

	given map[string]string // tokens by name

	page  *pageReader
	found string // message of the last step find
}

func newDialogue(shared *doortest.Dialogue, table *pageTable) doortest.Door {
	d := &dialogue{
		Dialogue: shared, config: jobs.Defaults(), page: newPageReader(table),
		answers: make(chan struct{}, 1000), trials: map[string]chan string{}, given: map[string]string{},
	}
	d.config.Listen = "127.0.0.1:0"
	d.jury = &runnertest.Jury{Before: func(ctx context.Context, tool, _ string) int {
		if tool == "submit_verdict" {
			return 0
		}
		select {
		case <-d.answers:
			return 0
		case <-ctx.Done():
			return http.StatusBadRequest
		case <-d.T.Context().Done():
			return http.StatusBadRequest
		}
	}}
	doortest.Configure(shared, yaml.NewDecoder, &d.config)
	d.other = runnertest.AgentRunner(d.T, d.Dir, d.agent)
	d.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), doortest.Patience)
		defer cancel()
		require.NoError(d.T, d.other.Close(ctx))
	})
	return doortest.Door{Start: d.start, Stop: func() { d.stop() }, Steps: d.steps(), Target: d.target, Read: d.read}
}

// read reads a message like a page.
func (d *dialogue) read(client, text string) {
	for _, fault := range d.page.read(client, text) {
		d.T.Errorf("message to %s: %s\n%s", client, fault, text)
	}
}

// shows compares the line that a page shows for the message of the last step find.
func (d *dialogue) shows(_ []string, want string) {
	require.Equal(d.T, want, d.page.shows(d.found), d.At)
}

// steps returns the steps. Each gets the words after the first, and the same words as one text.
func (d *dialogue) steps() map[string]func(string) {
	steps := map[string]func(string){}
	for word, do := range map[string]func(f []string, rest string){
		"run": d.run, "suite": d.suite, "judge": d.judge, "answers": d.judgeAnswers, "serve": d.serve, "serveas": d.serveAs,
		"trial": d.doTrial, "resume": d.resume, "over": d.awaitEnd, "grade": d.grade, "delete": d.remove,
		"request": d.request, "revoke": d.revoke, "skip": d.skip, "find": d.find, "shows": d.shows,
	} {
		steps[word] = func(rest string) { do(strings.Fields(rest), rest) }
	}
	return steps
}

// agent waits for the dialogue's action for a trial and executes it.
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

// trial returns the channel with the agent's actions for a trial.
func (d *dialogue) trial(task string, num int) chan string {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := fmt.Sprintf("%s#%d", task, num)
	if d.trials[id] == nil {
		d.trials[id] = make(chan string, 100)
	}
	return d.trials[id]
}

// start starts a server with the store and the runs of the previous one.
func (d *dialogue) start() *door.Door {
	var err error
	d.store, err = store.Open(d.Dir)
	require.NoError(d.T, err)
	d.tokens, err = token.New(context.Background(), d.store)
	require.NoError(d.T, err)
	alerts := board.NewAlerts(d.Log.Handler())
	log := slog.New(alerts)
	d.runs, err = queue.Open(context.Background(), store.RunsOf(d.store), d.config.MaxJobs, log)
	require.NoError(d.T, err)
	d.own = runnertest.GatedRunner(d.T, d.Dir, d.agent, d.runs)
	b := board.New(board.Options{Runner: d.own, Log: log, Queued: d.runs.Queued, UserOf: func(_ context.Context, run string) (string, error) {
		if user := d.runs.UserOf(run); user != "" {
			return user, nil
		}
		return token.Owner, nil
	}})
	alerts.SendTo(b)
	d.server, err = jobs.New(d.config, jobs.Options{Tokens: d.tokens, Board: b, Log: log})
	require.NoError(d.T, err)
	boarding, cancel := context.WithCancel(context.Background())
	var boards sync.WaitGroup
	boards.Go(func() { b.Serve(boarding) })
	boards.Go(func() {
		if err := d.runs.Resume(boarding, d.own); err != nil && boarding.Err() == nil && !errors.Is(err, runner.ErrClosed) {
			d.T.Error(err)
		}
	})
	d.stop = func() {
		ctx, end := context.WithTimeout(context.Background(), doortest.Patience)
		defer end()
		require.NoError(d.T, d.own.Close(ctx))
		d.Shut()
		cancel()
		d.Wait("board", boards.Wait)
		require.NoError(d.T, d.store.Close())
	}
	return d.server.Door()
}

// token returns a token of a user, or an invalid one.
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
	require.NoError(d.T, err)
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
	d.Secret(text)
	return text
}

// target adds the token that the second word names.
func (d *dialogue) target(a *doortest.Action, words []string) {
	require.Len(d.T, words, 1, d.At)
	a.URL += "ws"
	if text := d.token(words[0]); text != "" {
		a.URL += "?token=" + text
	}
}

// skip drops messages up to and including the first of a type: CLIENT TYPE.
func (d *dialogue) skip(f []string, _ string) { d.until(f[0], f[1]) }

// find drops messages until one has the type of the given message, and compares that one: CLIENT
// MESSAGE.
func (d *dialogue) find(f []string, rest string) {
	_, want, _ := strings.Cut(rest, " ")
	var m struct{ Type string }
	require.NoError(d.T, json.Unmarshal([]byte(d.Fill(want)), &m), d.At)
	found := d.until(f[0], m.Type)
	d.found = string(found)
	d.Names.Compare(d.T, d.At, want, found)
}

func (d *dialogue) until(name, kind string) []byte {
	for {
		e := d.Next(name)
		require.Equal(d.T, "message", e.Event, "%s: closed with %d %s", d.At, e.Code, e.Reason)
		var m struct{ Type string }
		require.NoError(d.T, json.Unmarshal([]byte(e.Text), &m), d.At)
		if m.Type == kind {
			return []byte(e.Text)
		}
	}
}
