package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func playDialogues(t *testing.T, play func(t *testing.T, happens func(event)) player) {
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

// dialogue is a server, the clients that connect to it and the evaluations asked for.
type dialogue struct {
	t      *testing.T
	at     string // the line that is played
	config dialogueConfig
	dir    string // of the store
	log    *safeBuffer
	player player

	errorLogged bool // as it should be

	server *agents.Server
	store  *store.Store
	addr   net.Addr
	served chan error

	mu     sync.Mutex
	events map[string]chan event

	names doortest.Names // what $NAME was
	evals map[string]*asked
	all   sync.WaitGroup
}

type dialogueConfig struct {
	agents.Config `yaml:",inline"`
	Key           string            `yaml:"key"`
	Keys          map[string]string `yaml:"keys"`
}

// asked is an evaluation that the dialogue asks for.
type asked struct {
	cancel  context.CancelCauseFunc
	status  chan remote.Status
	outcome chan any
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

func newDialogue(t *testing.T, config []byte, play func(t *testing.T, happens func(event)) player) *dialogue {
	d := &dialogue{t: t, dir: t.TempDir(), log: &safeBuffer{}, events: map[string]chan event{}, names: doortest.Names{}, evals: map[string]*asked{}}
	d.config.Config = agents.Defaults()
	d.config.Listen = "127.0.0.1:0"
	decoder := yaml.NewDecoder(bytes.NewReader(config))
	decoder.KnownFields(true)
	if len(bytes.TrimSpace(config)) > 0 {
		require.NoError(t, decoder.Decode(&d.config))
	}
	d.player = play(t, func(e event) { d.eventsOf(e.Name) <- e })
	d.start()
	return d
}

// start starts a server with the store of the one before.
func (d *dialogue) start() {
	var err error
	d.store, err = store.Open(d.dir)
	require.NoError(d.t, err)
	d.server, err = agents.New(d.config.Config, agents.Options{
		Key: d.config.Key, Keys: d.config.Keys, Store: d.store, ServerID: "server-001", Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(d.t, err)
	d.addr, err = d.server.Door().Listen()
	require.NoError(d.t, err)
	d.config.Listen = d.addr.String() // clients come back to the same address
	d.served = make(chan error, 1)
	go func(served chan error) { served <- d.server.Door().Serve(context.Background()) }(d.served)
}

// stop shuts the server down, as SIGTERM does.
func (d *dialogue) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(d.t, d.server.Door().Shutdown(ctx))
	require.NoError(d.t, <-d.served)
	for _, a := range d.evals {
		a.cancel(remote.ErrCallerGone)
	}
	d.all.Wait()
	d.server.Close()
	require.NoError(d.t, d.store.Close())
}

func (d *dialogue) end() {
	d.stop()
	d.player.End()
	for _, secret := range append([]string{"geheim"}, d.config.Key) {
		if secret != "" {
			require.NotContains(d.t, d.log.String(), secret, "secrets are not logged")
		}
	}
	if !d.errorLogged {
		require.NotContains(d.t, d.log.String(), "level=ERROR")
	}
	if d.t.Failed() {
		d.t.Log(d.at)
		d.t.Log(d.log.String())
	}
}

func (d *dialogue) eventsOf(name string) chan event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events[name] == nil {
		d.events[name] = make(chan event, 100_000)
	}
	return d.events[name]
}

// next is what happens to a client next.
func (d *dialogue) next(name string) event {
	select {
	case e := <-d.eventsOf(name):
		return e
	case <-time.After(patience):
		require.FailNow(d.t, "nothing happens", "%s\n%s", d.at, d.log.String())
		return event{}
	}
}

func (d *dialogue) step(line string) {
	if i := strings.IndexAny(line, "<> "); i >= 0 && line[i] != ' ' {
		name, rest := or(line[:i], "a"), strings.TrimSpace(line[i+1:])
		if line[i] == '>' {
			d.player.Play(action{Do: "say", Name: name, Text: d.fill(rest)})
		} else {
			d.hear(name, rest)
		}
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	do, ok := map[string]func(string){
		"connect": d.connect, "join": d.join, "refused": d.refused, "drop": d.drop, "close": d.close, "binary": d.binary, "large": d.large,
		"pause": d.pause, "crowd": d.crowd, "flood": d.flood, "resume": d.resume,
		"evaluate": d.evaluate, "answered": d.answered, "again": d.again, "failed": d.failed, "status": d.status, "cancel": d.cancel,
		"agents": d.agents, "kick": d.kick, "logs": d.logs, "restart": d.restart, "shutdown": d.shutdown,
	}[word]
	require.True(d.t, ok, "%s: what is %s?", d.at, word)
	do(rest)
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// target is the client a line is about, and the headers it connects with.
func (d *dialogue) target(rest string) action {
	a := action{Name: "a", URL: "ws://" + d.addr.String() + "/", Header: map[string]string{}}
	if name, after, _ := strings.Cut(rest, " "); name != "" && !strings.HasSuffix(name, ":") {
		a.Name, rest = name, after
	}
	if header, value, ok := strings.Cut(rest, ": "); ok {
		a.Header[header] = strings.ReplaceAll(strings.TrimSpace(value), "$address", d.addr.String())
	}
	return a
}

func (d *dialogue) connect(rest string) {
	a := d.target(rest)
	a.Do = "connect"
	d.player.Play(a)
	require.Equal(d.t, "open", d.next(a.Name).Event, d.at)
}

// join connects a client, registers it and lets it be ready. As clients do, it tries again
// when the server has no room for it.
func (d *dialogue) join(rest string) {
	name, capabilities, _ := strings.Cut(rest, " ")
	id := fmt.Sprintf("550e8400-e29b-41d4-a716-44665544%04x", name[0])
	for range 10 {
		d.connect(name)
		d.player.Play(action{Do: "say", Name: name, Text: `{"type":"register","clientId":"` + id + `","capabilities":` + or(capabilities, `{"tools":[],"maxConcurrency":1,"version":"1.0.0"}`) + `}`})
		e := d.next(name)
		if e.Event == "message" {
			d.names.Compare(d.t, d.at, `{"type":"welcome","serverId":"server-001","version":"1.0.0","timestamp":"$time"}`, []byte(e.Text))
			e = d.next(name)
		}
		if e.Event == "message" {
			d.names.Compare(d.t, d.at, `{"type":"registration_ack","clientId":"`+id+`","status":"accepted","message":"Client registered successfully","evaluationsCount":0}`, []byte(e.Text))
			d.step(name + `> {"type":"ready","timestamp":"2024-01-01T00:00:00Z"}`)
			return
		}
		require.Equal(d.t, 1013, e.Code, "%s\n%s", d.at, d.log)
	}
	require.FailNow(d.t, "the server has no room", d.at)
}

func (d *dialogue) refused(rest string) {
	code, rest, _ := strings.Cut(rest, " ")
	a := d.target(rest)
	a.Do = "connect"
	d.player.Play(a)
	e := d.next(a.Name)
	require.Equal(d.t, "refused "+code, fmt.Sprint(e.Event, " ", e.Code), d.at)
}

func (d *dialogue) drop(rest string) {
	d.player.Play(action{Do: "drop", Name: or(rest, "a")})
	require.Equal(d.t, "closed", d.next(or(rest, "a")).Event, d.at)
}

func (d *dialogue) close(rest string) {
	fields := strings.Fields(rest)
	code, err := strconv.Atoi(fields[1])
	require.NoError(d.t, err, d.at)
	d.player.Play(action{Do: "close", Name: fields[0], Code: code, Reason: "bye"})
	for d.next(fields[0]).Event != "closed" {
	}
}

func (d *dialogue) binary(rest string) {
	d.player.Play(action{Do: "binary", Name: or(rest, "a"), Text: "{}"})
}

func (d *dialogue) large(rest string) {
	fields := strings.Fields(rest)
	n, err := strconv.Atoi(fields[1])
	require.NoError(d.t, err, d.at)
	d.player.Play(action{Do: "say", Name: fields[0], Text: `{"type":"` + strings.Repeat("x", n-11) + `"}`})
}

func (d *dialogue) pause(rest string)  { d.player.Play(action{Do: "pause", Name: rest}) }
func (d *dialogue) resume(rest string) { d.player.Play(action{Do: "resume", Name: rest}) }

// crowd connects many clients that do nothing.
func (d *dialogue) crowd(rest string) {
	n, err := strconv.Atoi(rest)
	require.NoError(d.t, err, d.at)
	d.player.Play(action{Do: "crowd", URL: "ws://" + d.addr.String() + "/", Code: n})
}

// flood says something many times.
func (d *dialogue) flood(rest string) {
	fields := strings.SplitN(rest, " ", 3)
	n, err := strconv.Atoi(fields[1])
	require.NoError(d.t, err, d.at)
	for range n {
		d.player.Play(action{Do: "say", Name: fields[0], Text: fields[2]})
	}
}

func (d *dialogue) hear(name, want string) {
	e := d.next(name)
	if code, ok := strings.CutPrefix(want, "close "); ok {
		require.Equal(d.t, code, strings.TrimSpace(fmt.Sprint(e.Code, " ", e.Reason)), "%s: %s", d.at, e.Text)
		return
	}
	if want == "cut" {
		require.Equal(d.t, "closed 1006", fmt.Sprint(e.Event, " ", e.Code), "%s: %s", d.at, e.Text)
		return
	}
	require.Equal(d.t, "message", e.Event, "%s: closed with %d %s\n%s", d.at, e.Code, e.Reason, d.log)
	d.names.Compare(d.t, d.at, want, []byte(e.Text))
}

// fill replaces "$NAME" by what it was.
func (d *dialogue) fill(text string) string {
	for name, value := range d.names {
		data, err := json.Marshal(value)
		require.NoError(d.t, err)
		text = strings.ReplaceAll(text, `"`+name+`"`, string(data))
	}
	return text
}

func (d *dialogue) evaluate(rest string) {
	label, params, _ := strings.Cut(rest, " ")
	var e remote.Evaluation
	var more struct {
		Clients []string `json:"clients"`
		Size    int      `json:"size"`
	}
	require.NoError(d.t, json.Unmarshal([]byte(or(params, "{}")), &e), d.at)
	require.NoError(d.t, json.Unmarshal([]byte(or(params, "{}")), &more), d.at)
	e.ID, e.Name, e.Tool = or(e.ID, "run/"+label+"/1/1"), or(e.Name, label), or(e.Tool, "chat")
	if e.Timeout == 0 {
		e.Timeout = 30000
	}
	if more.Size > 0 {
		e.Input = json.RawMessage(`"` + strings.Repeat("x", more.Size) + `"`)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &asked{cancel, make(chan remote.Status, 100), make(chan any, 1)}
	d.evals[label] = a
	hub := d.server.Hub()
	d.all.Go(func() {
		s, err := hub.Reserve(ctx, &remote.Want{ID: e.ID, Tool: e.Tool, Priority: e.Metadata.Priority, Clients: more.Clients})
		if err != nil {
			a.outcome <- err
			return
		}
		answer, err := s.Evaluate(ctx, &e, func(st remote.Status) { a.status <- st })
		s.Release()
		if err != nil {
			a.outcome <- err
			return
		}
		a.outcome <- answer
	})
}

func (d *dialogue) outcome(label string) any {
	select {
	case o := <-d.evals[label].outcome:
		return o
	case <-time.After(patience):
		require.FailNow(d.t, "no answer", "%s\n%s", d.at, d.log)
		return nil
	}
}

func (d *dialogue) answered(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	o := d.outcome(label)
	answer, ok := o.(*remote.Answer)
	require.True(d.t, ok, "%s: %v", d.at, o)
	data, err := json.Marshal(answer)
	require.NoError(d.t, err)
	d.names.Compare(d.t, d.at, want, data)
}

func (d *dialogue) again(rest string) {
	label, why, _ := strings.Cut(rest, " ")
	err, _ := d.outcome(label).(error)
	require.NotNil(d.t, executor.AsAgain(err), "%s: %v", d.at, err)
	require.ErrorContains(d.t, err, why, d.at)
}

func (d *dialogue) failed(rest string) {
	label, why, _ := strings.Cut(rest, " ")
	err, _ := d.outcome(label).(error)
	require.Nil(d.t, executor.AsAgain(err), "%s: %v", d.at, err)
	require.ErrorContains(d.t, err, why, d.at)
}

func (d *dialogue) status(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	select {
	case s := <-d.evals[label].status:
		data, err := json.Marshal(s)
		require.NoError(d.t, err)
		d.names.Compare(d.t, d.at, want, data)
	case <-time.After(patience):
		require.FailNow(d.t, "no status", "%s\n%s", d.at, d.log)
	}
}

func (d *dialogue) cancel(rest string) {
	d.evals[rest].cancel(errors.New("cancelled"))
	d.failed(rest + " cancelled")
}

func (d *dialogue) agents(rest string) {
	all, err := d.server.Hub().Agents(context.Background())
	require.NoError(d.t, err)
	all = slices.DeleteFunc(all, func(a *remote.Agent) bool { return a.State == remote.Gone && a.Running == 0 })
	data, err := json.Marshal(all)
	require.NoError(d.t, err)
	d.names.Compare(d.t, d.at, rest, data)
}

func (d *dialogue) kick(rest string) {
	id, why, _ := strings.Cut(rest, " ")
	require.NoError(d.t, d.server.Hub().Kick(context.Background(), id, why))
}

func (d *dialogue) logs(rest string) {
	require.Contains(d.t, d.log.String(), rest, d.at)
	d.errorLogged = true
}

func (d *dialogue) restart(string) {
	d.stop()
	d.evals = map[string]*asked{}
	d.start()
}

func (d *dialogue) shutdown(string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(d.t, d.server.Door().Shutdown(ctx))
}
