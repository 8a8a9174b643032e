package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/owned"
	"waza/rpc/gateway/store"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
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

	names doortest.Names // what $NAME was
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
		answers: make(chan struct{}, 1000), trials: map[string]chan string{}, names: doortest.Names{}, given: map[string]string{},
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
	d.names.Compare(d.t, d.at, want, d.until(f[0], m.Type))
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
	d.names.Compare(d.t, d.at, want, []byte(e.Text))
}

// fill replaces $NAME by what it was.
func (d *dialogue) fill(text string) string {
	for name, value := range d.names {
		text = strings.ReplaceAll(text, name, fmt.Sprint(value))
	}
	return text
}
