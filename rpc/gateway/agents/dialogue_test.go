package agents_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/agents"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// dialogue is a server, its clients and the requested evaluations.
type dialogue struct {
	*doortest.Dialogue
	config dialogueConfig
	server *agents.Server
	store  *store.Store
	evals  map[string]*asked
	all    sync.WaitGroup

	metrics *prometheus.Registry // of the server
}

type dialogueConfig struct {
	agents.Config `yaml:",inline"`
	Key           string            `yaml:"key"`
	Keys          map[string]string `yaml:"keys"`
}

// asked is an evaluation that the dialogue requests.
type asked struct {
	cancel  context.CancelCauseFunc
	status  chan remote.Status
	outcome chan any
}

func newDialogue(shared *doortest.Dialogue) doortest.Door {
	d := &dialogue{Dialogue: shared}
	d.config.Config = agents.Defaults()
	d.config.Listen = "127.0.0.1:0"
	doortest.Configure(shared, yaml.NewDecoder, &d.config)
	d.Secret("geheim")
	if d.config.Key != "" {
		d.Secret(d.config.Key)
	}
	return doortest.Door{
		Start: d.start,
		Stop:  d.stop,
		Steps: map[string]func(string){
			"join": d.join, "drop": d.drop,
			"evaluate": d.evaluate, "answered": d.answered, "again": d.again, "failed": d.failed, "status": d.status, "cancel": d.cancel,
			"agents": d.agents, "kick": d.kick, "waiting": d.waiting,
		},
	}
}

func (d *dialogue) start() *door.Door {
	d.evals = map[string]*asked{}
	var err error
	d.store, err = store.Open(d.Dir)
	require.NoError(d.T, err)
	d.metrics = prometheus.NewRegistry()
	d.server, err = agents.New(d.config.Config, agents.Options{
		Key: d.config.Key, Keys: d.config.Keys, Store: d.store, ServerID: "server-001", Metrics: d.metrics,
		Log: slog.New(d.Log.Handler()),
	})
	require.NoError(d.T, err)
	return d.server.Door()
}

func (d *dialogue) stop() {
	d.Shut()
	for _, a := range d.evals {
		a.cancel(remote.ErrCallerGone)
	}
	d.Wait("calls of the server", d.all.Wait)
	d.server.Close()
	require.NoError(d.T, d.store.Close())
}

// join connects a client, registers it and sends ready. Like real clients, it retries when the
// server has no room: the server then closes the new connection, perhaps before its handshake.
func (d *dialogue) join(rest string) {
	name, capabilities, _ := strings.Cut(rest, " ")
	id := fmt.Sprintf("550e8400-e29b-41d4-a716-44665544%04x", name[0])
	for deadline := time.Now().Add(doortest.Patience); time.Now().Before(deadline); {
		if !d.TryConnect(name) {
			continue
		}
		d.Say(name, `{"type":"register","clientId":"`+id+`","capabilities":`+
			cmp.Or(capabilities, `{"tools":[],"maxConcurrency":1,"version":"1.0.0"}`)+`}`)
		e := d.Next(name)
		if e.Event == "message" {
			d.Names.Compare(d.T, d.At, `{"type":"welcome","serverId":"server-001","version":"1.0.0","timestamp":"$time"}`, []byte(e.Text))
			e = d.Next(name)
		}
		if e.Event == "message" {
			d.Names.Compare(d.T, d.At,
				`{"type":"registration_ack","clientId":"`+id+`","status":"accepted","message":"Client registered successfully","evaluationsCount":0}`,
				[]byte(e.Text))
			d.Say(name, `{"type":"ready","timestamp":"2024-01-01T00:00:00Z"}`)
			return
		}
		require.Equal(d.T, 1013, e.Code, "%s\n%s", d.At, &d.Log)
	}
	require.FailNow(d.T, "the server has no room", d.At)
}

// drop drops the connection of a client that has received all messages.
func (d *dialogue) drop(name string) {
	name = cmp.Or(name, "a")
	d.Player.Play(doortest.Action{Do: "drop", Name: name})
	require.Equal(d.T, "closed", d.Next(name).Event, d.At)
}

func (d *dialogue) evaluate(rest string) {
	label, params, _ := strings.Cut(rest, " ")
	var e remote.Evaluation
	var more struct {
		Clients []string `json:"clients"`
		Size    int      `json:"size"`
	}
	require.NoError(d.T, json.Unmarshal([]byte(cmp.Or(params, "{}")), &e), d.At)
	require.NoError(d.T, json.Unmarshal([]byte(cmp.Or(params, "{}")), &more), d.At)
	e.ID, e.Name, e.Tool = cmp.Or(e.ID, "run/"+label+"/1/1"), cmp.Or(e.Name, label), cmp.Or(e.Tool, "chat")
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

// waiting waits until that many evaluations wait for an agent.
func (d *dialogue) waiting(rest string) {
	d.Until("waiting evaluations", func() bool {
		families, err := d.metrics.Gather()
		require.NoError(d.T, err)
		for _, f := range families {
			if f.GetName() == "waza_agents_waiting" {
				return fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue()) == rest
			}
		}
		return false
	})
}

func (d *dialogue) outcome(label string) any {
	return doortest.Await(d.Dialogue, "answer", d.evals[label].outcome)
}

func (d *dialogue) answered(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	o := d.outcome(label)
	answer, ok := o.(*remote.Answer)
	require.True(d.T, ok, "%s: %v", d.At, o)
	d.Compare(want, answer)
}

func (d *dialogue) again(rest string) {
	label, why, _ := strings.Cut(rest, " ")
	err, _ := d.outcome(label).(error)
	require.NotNil(d.T, executor.AsRetry(err), "%s: %v", d.At, err)
	require.ErrorContains(d.T, err, why, d.At)
}

func (d *dialogue) failed(rest string) {
	label, why, _ := strings.Cut(rest, " ")
	err, _ := d.outcome(label).(error)
	require.Nil(d.T, executor.AsRetry(err), "%s: %v", d.At, err)
	require.ErrorContains(d.T, err, why, d.At)
}

func (d *dialogue) status(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	d.Compare(want, doortest.Await(d.Dialogue, "status", d.evals[label].status))
}

func (d *dialogue) cancel(rest string) {
	d.evals[rest].cancel(errors.New("cancelled"))
	d.failed(rest + " cancelled")
}

func (d *dialogue) agents(rest string) {
	all, err := d.server.Hub().Agents(context.Background())
	require.NoError(d.T, err)
	d.Compare(rest, slices.DeleteFunc(all, func(a *remote.Agent) bool { return a.State == remote.Gone && a.Running == 0 }))
}

func (d *dialogue) kick(rest string) {
	id, why, _ := strings.Cut(rest, " ")
	require.NoError(d.T, d.server.Hub().Kick(context.Background(), id, why))
}
