package browser_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/browser"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/store"
	executor "waza/runner/executor/browser"
	"waza/runner/provider"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = doortest.Patience

// TestDialogues plays the dialogues of testdata/dialogues. The README there describes their
// form.
func TestDialogues(t *testing.T) {
	t.Parallel()
	doortest.Play(t, doortest.PlayOurs, newDialogue)
}

// TestDialoguesWithNode plays them with the WebSocket clients of the npm package ws.
func TestDialoguesWithNode(t *testing.T) {
	t.Parallel()
	doortest.Play(t, doortest.PlayNode(doortest.NodeModules(t)), newDialogue)
}

// dialogue is a server, its clients and the trials that reserve extensions.
type dialogue struct {
	*doortest.Dialogue
	config dialogueConfig
	model  *scripted
	server *browser.Server
	store  *store.Store
	open   int // number of connected clients
	trials map[string]*trial
	all    sync.WaitGroup
}

type dialogueConfig struct {
	browser.Config `yaml:",inline"`
	NoModel        bool `yaml:"no_model"`
}

func newDialogue(shared *doortest.Dialogue) doortest.Door {
	d := &dialogue{Dialogue: shared, trials: map[string]*trial{}, model: newScripted(shared.T)}
	d.config.Config = browser.Defaults()
	d.config.Listen, d.config.MessagesPerMinute, d.config.ReconnectsPerMinute = "127.0.0.1:0", 10_000, 1000
	doortest.Configure(shared, yaml.NewDecoder, &d.config)
	return doortest.Door{
		Start: d.start,
		Stop:  d.stop,
		Steps: map[string]func(string){
			"connect": d.connect, "join": d.join, "large": d.large, "assistant": d.assistant, "answer": d.model.release,
			"idle": d.idle, "break": d.breakStore,
			"reserve": d.reserve, "execute": d.execute, "executed": d.executed, "release": d.release,
			"extensions": d.extensions, "assistants": d.assistants,
		},
		Target:         d.target,
		Complete:       d.complete,
		CompareMessage: d.heard,
		AwaitLeft:      d.left,
	}
}

func (d *dialogue) start() *door.Door {
	d.open = 0
	var err error
	d.store, err = store.Open(d.Dir)
	require.NoError(d.T, err)
	o := browser.Options{Store: d.store, Metrics: prometheus.NewRegistry(), Log: slog.New(d.Log.Handler())}
	if !d.config.NoModel {
		o.Model = d.model.client
	}
	d.server, err = browser.New(d.config.Config, o)
	require.NoError(d.T, err)
	return d.server.Door()
}

func (d *dialogue) stop() {
	d.Shut()
	d.server.Close()
	for _, tr := range d.trials {
		tr.cancel(errors.New("over"))
	}
	d.Wait("calls of the server", d.all.Wait)
	require.NoError(d.T, d.store.Close())
}

// breakStore makes the store fail.
func (d *dialogue) breakStore(string) {
	d.ExpectError("sql: database is closed")
	require.NoError(d.T, d.store.Close())
}

// complete adds the timestamp to a message.
func (d *dialogue) complete(text string) string {
	var m map[string]any
	require.NoError(d.T, json.Unmarshal([]byte(text), &m), d.At)
	if _, ok := m["timestamp"]; !ok {
		m["timestamp"] = 1234567890
	}
	data, err := json.Marshal(m)
	require.NoError(d.T, err)
	return string(data)
}

// target sets the path, by default /ws, and the query of the address.
func (d *dialogue) target(a *doortest.Action, words []string) {
	path, query := "ws", ""
	for _, word := range words {
		switch word[0] {
		case '/':
			path = word[1:]
		case '?':
			query = word
		default:
			require.Fail(d.T, "neither path nor query", "%s: %s", d.At, word)
		}
	}
	a.URL += path + query
}

func (d *dialogue) connect(rest string) {
	d.Connect(rest)
	d.open++
}

// left waits until the server has no more connections than clients are connected.
func (d *dialogue) left(string) {
	d.open--
	d.Until("client disconnected", func() bool { return d.server.Door().Connections() <= d.open })
}

// join connects a client and reads its first message.
func (d *dialogue) join(rest string) {
	d.connect(rest)
	name, _, _ := strings.Cut(rest, " ")
	d.Expect(cmp.Or(name, "a"), `{"type":"connected","payload":"$text"}`)
}

// large sends a command of the given size.
func (d *dialogue) large(rest string) {
	name, size, _ := strings.Cut(rest, " ")
	d.Say(name, `{"type":"command","id":"large","payload":{"assistant_id":"x","text":"`+strings.Repeat("x", d.Number(size))+`"}}`)
}

// heard compares a message after checking its time and id. It ignores the time, ids that the
// dialogue does not contain, the payload "$text", and the empty payload of ack and pong.
func (d *dialogue) heard(want string, text []byte) {
	var got, wanted map[string]any
	require.NoError(d.T, json.Unmarshal(text, &got), d.At)
	require.NoError(d.T, json.Unmarshal([]byte(want), &wanted), d.At)
	require.Regexp(d.T, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, got["id"], d.At)
	require.InDelta(d.T, time.Now().UnixMilli(), got["timestamp"], 60_000, d.At)
	delete(got, "timestamp")
	if _, ok := wanted["id"]; !ok {
		delete(got, "id")
	}
	if wanted["payload"] == "$text" {
		wanted["payload"] = got["payload"]
	}
	if wanted["type"] == "ack" || wanted["type"] == "pong" {
		wanted["payload"] = map[string]any{}
	}
	d.dates(got["payload"])
	wantText, err := json.Marshal(wanted)
	require.NoError(d.T, err)
	d.Compare(string(wantText), got)
}

// dates checks that each time exists in both forms, and removes the ISO form.
func (d *dialogue) dates(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if at, ok := v[name+"_iso"].(string); ok {
				parsed, err := time.Parse(time.RFC3339, at)
				require.NoError(d.T, err, d.At)
				require.EqualValues(d.T, parsed.UnixMilli(), value, d.At)
				delete(v, name+"_iso")
			} else if strings.HasSuffix(name, "_at") {
				require.Fail(d.T, "a time without its ISO form", "%s: %s", d.At, name)
			}
			d.dates(value)
		}
	case []any:
		for _, item := range v {
			d.dates(item)
		}
	}
}

// assistant creates and activates an assistant: NAME CAPABILITY…. The name also becomes its
// id.
func (d *dialogue) assistant(rest string) {
	name, capabilities, _ := strings.Cut(rest, " ")
	d.join("maker ?version=1.0.0")
	d.Say("maker", `{"type":"create_assistant","id":"m1","payload":{"name":"`+name+`","instructions":"You are `+name+
		`.","capabilities":`+cmp.Or(capabilities, `["navigate","click_element"]`)+`}}`)
	d.Expect("maker", `{"type":"ack","correlation_id":"m1"}`)
	e := d.Next("maker")
	var m struct {
		Payload struct{ Assistant struct{ ID string } }
	}
	require.NoError(d.T, json.Unmarshal([]byte(e.Text), &m))
	require.NotEmpty(d.T, m.Payload.Assistant.ID, "%s: %s", d.At, e.Text)
	d.Names["$"+name] = m.Payload.Assistant.ID
	d.Say("maker", `{"type":"activate_assistant","id":"m2","payload":{"assistant_id":"$`+name+`"}}`)
	d.Expect("maker", `{"type":"ack","correlation_id":"m2"}`)
	for {
		e := d.Next("maker")
		if strings.Contains(e.Text, `"active"`) {
			break
		}
	}
	d.Drop("maker")
}

// idle waits until no command is active.
func (d *dialogue) idle(string) {
	d.Until("no active command", func() bool {
		all, err := d.server.Hub().Assistants(context.Background())
		return err == nil && !slices.ContainsFunc(all, func(a *executor.Assistant) bool { return a.Executing != nil })
	})
}

// scripted is a model that executes the steps in a prompt. " ; " separates the steps. It
// executes one step per request.
type scripted struct {
	*runnertest.Model
	pool *provider.Pool

	mu      sync.Mutex // guards the fields below
	waiting map[string]chan struct{}
}

func newScripted(t *testing.T) *scripted {
	s := &scripted{waiting: map[string]chan struct{}{}, pool: provider.NewPool(provider.PoolOptions{})}
	s.Model = runnertest.NewModel(t, s.answer)
	t.Cleanup(s.pool.Close)
	return s
}

func (s *scripted) client(ctx context.Context, name string) (provider.Client, error) {
	return s.pool.Client(ctx, provider.OpenAI, provider.Endpoint{BaseURL: s.URL}, cmp.Or(name, "usual"))
}

func (s *scripted) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[name] == nil {
		s.waiting[name] = make(chan struct{}, 100)
	}
	return s.waiting[name]
}

// release lets a waiting model answer.
func (s *scripted) release(name string) { s.gate(name) <- struct{}{} }

func (s *scripted) answer(asked runnertest.Asked) runnertest.Answer {
	steps := strings.Split(asked.Prompt, " ; ")
	step := steps[min(len(asked.Results), len(steps)-1)]
	word, rest, _ := strings.Cut(step, " ")
	switch word {
	case "tool":
		name, arguments, _ := strings.Cut(rest, " ")
		return runnertest.Answer{Tool: name, Arguments: json.RawMessage(arguments)}
	case "parts":
		return runnertest.Answer{Parts: strings.Split(rest, "|")}
	case "results":
		return runnertest.Answer{Text: strings.Join(asked.Results, " / ")}
	case "said":
		return runnertest.Answer{Text: strings.Join(asked.Said, " / ")}
	case "who":
		return runnertest.Answer{Text: asked.Model + ": " + asked.System + " [" + strings.Join(asked.Tools, " ") + "]"}
	case "wait":
		select {
		case <-s.gate(rest):
			return runnertest.Answer{Text: rest}
		case <-asked.GaveUp:
			return runnertest.Answer{Status: 400}
		}
	case "until":
		select {
		case <-s.gate(rest):
			return runnertest.Answer{Text: rest}
		default:
			return runnertest.Answer{Status: 500}
		}
	case "status":
		status, _ := strconv.Atoi(rest)
		return runnertest.Answer{Status: status}
	}
	return runnertest.Answer{Text: strings.TrimPrefix(step, "say ")}
}

// trial is a trial that reserves an extension.
type trial struct {
	cancel context.CancelCauseFunc
	slot   chan executor.Slot
	result chan string
	held   executor.Slot
}

// reserve reserves an extension: LABEL ID.
func (d *dialogue) reserve(rest string) {
	label, id, _ := strings.Cut(rest, " ")
	ctx, cancel := context.WithCancelCause(context.Background())
	tr := &trial{cancel: cancel, slot: make(chan executor.Slot, 1), result: make(chan string, 1)}
	d.trials[label] = tr
	hub := d.server.Hub()
	d.all.Go(func() {
		if s, err := hub.Reserve(ctx, &executor.Want{ID: label, Extension: id}); err == nil {
			tr.slot <- s
		}
	})
}

// execute executes a command in JSON with the extension of a trial.
func (d *dialogue) execute(rest string) {
	label, text, _ := strings.Cut(rest, " ")
	tr := d.trials[label]
	if tr.held == nil {
		tr.held = doortest.Await(d.Dialogue, "extension", tr.slot)
	}
	c := &executor.Command{}
	require.NoError(d.T, json.Unmarshal([]byte(d.Fill(text)), c), d.At)
	var steps []string
	d.all.Go(func() {
		a, err := tr.held.Execute(context.Background(), c, func(s executor.Step) {
			data, _ := json.Marshal(s)
			steps = append(steps, string(data))
		})
		if err != nil {
			tr.result <- fmt.Sprintf("%T: %v", err, err)
			return
		}
		tr.result <- strings.Join(steps, " ") + " => " + a.Text
	})
}

// executed compares the result of execute.
func (d *dialogue) executed(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	require.Regexp(d.T, want, doortest.Await(d.Dialogue, "answer", d.trials[label].result), d.At)
}

func (d *dialogue) release(label string) {
	if d.trials[label].held != nil {
		d.trials[label].held.Release()
	}
}

func (d *dialogue) extensions(want string) {
	all, err := d.server.Hub().Extensions(context.Background())
	require.NoError(d.T, err)
	d.Compare(want, all)
}

func (d *dialogue) assistants(want string) {
	all, err := d.server.Hub().Assistants(context.Background())
	require.NoError(d.T, err)
	d.Compare(want, all)
}
