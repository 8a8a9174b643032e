package router_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"waza/rpc/gateway/door"
	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/router"
	"waza/rpc/gateway/store"
	"waza/runner/routing"
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

// dialogue is a server, its clients and the messages sent to them.
type dialogue struct {
	*doortest.Dialogue
	config dialogueConfig
	server *router.Server
	model  *script // nil when words decide
	store  *store.Store
	sent   map[string]*sending
	all    sync.WaitGroup
}

type dialogueConfig struct {
	router.Config `yaml:",inline"`
	// Model lists the choices of the model in order; without any, words decide.
	Model []routing.Choice `yaml:"model"`
	// Shows adds a desktop that shows notifications.
	Shows bool `yaml:"shows"`
}

// sending is a message that is being sent.
type sending struct {
	cancel  context.CancelFunc
	outcome chan any
}

// script is a model that returns the choices of a dialogue.
type script struct {
	mu      sync.Mutex
	choices []routing.Choice
	asked   []*routing.Question
}

func (s *script) Choose(_ context.Context, q *routing.Question) (*routing.Choice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	if len(s.choices) == 0 {
		return &routing.Choice{By: routing.ByModel, Reason: "nobody is left"}, nil
	}
	c := s.choices[0]
	s.choices = s.choices[1:]
	c.By = routing.ByModel
	return &c, nil
}

// screen is a desktop that logs its notifications.
type screen struct{ log *doortest.Log }

func (s screen) Show(title, body, priority string) bool {
	fmt.Fprintf(s.log, "shown: %s: %s (%s)\n", title, body, priority)
	return true
}

func newDialogue(shared *doortest.Dialogue) doortest.Door {
	d := &dialogue{Dialogue: shared}
	d.config.Config = router.Defaults()
	d.config.Listen = "localhost:0"
	doortest.Configure(shared, yaml.NewDecoder, &d.config)
	d.Secret("geheim")
	return doortest.Door{
		Start: d.start,
		Stop:  d.stop,
		Steps: map[string]func(string){
			"join": d.join, "gone": d.gone, "crowd": d.crowd,
			"send": d.send, "outcome": d.outcome, "failed": d.failed, "forget": d.forget,
			"messages": d.messages, "settled": d.settled, "state": d.state, "many": d.many, "clients": d.clients, "asked": d.asked,
		},
		Target:    d.target,
		AwaitLeft: d.left,
	}
}

func (d *dialogue) start() *door.Door {
	d.sent = map[string]*sending{}
	var err error
	d.store, err = store.Open(d.Dir)
	require.NoError(d.T, err)
	o := router.Options{Store: store.MessagesOf(d.store), Metrics: prometheus.NewRegistry(), Log: slog.New(d.Log.Handler())}
	if len(d.config.Model) > 0 {
		d.model = &script{choices: d.config.Model}
		o.Chooser = d.model
	}
	if d.config.Shows {
		o.Desktop = screen{&d.Log}
	}
	d.server, err = router.New(d.config.Config, o)
	require.NoError(d.T, err)
	return d.server.Door()
}

func (d *dialogue) stop() {
	d.Shut()
	d.server.Close()
	for _, s := range d.sent {
		s.cancel()
	}
	d.Wait("calls of the server", d.all.Wait)
	require.NoError(d.T, d.store.Close())
}

func (d *dialogue) port() string {
	_, port, _ := net.SplitHostPort(d.Addr().String())
	return port
}

// target sets the host to localhost, or to the word after at. The word pings makes pings events.
func (d *dialogue) target(a *doortest.Action, words []string) {
	a.URL = "ws://localhost:" + d.port()
	switch {
	case len(words) == 2 && words[0] == "at":
		host := words[1]
		if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			host = "127.0.0.1" // the machine has no other loopback address
		} else {
			l.Close()
		}
		a.URL = "ws://" + net.JoinHostPort(host, d.port()) + "/"
	case len(words) == 1 && words[0] == "pings":
		a.Pings = true
	default:
		require.Empty(d.T, words, d.At)
	}
}

// join connects a client and registers it. The rest of the line is its description.
func (d *dialogue) join(rest string) {
	name, description, _ := strings.Cut(rest, " ")
	d.Connect(name)
	d.Say(name, `{"type":"registration","payload":{"name":"`+name+`","description":"`+cmp.Or(description, "Takes anything.")+`"}}`)
	d.Expect(name, `{"type":"registration_response","payload":{"success":true,"clientId":"$id of `+name+`","message":"$text"}}`)
	delete(d.Names, "$id of "+name) // the next registration gets a new id
}

// gone drops a client whose registered name differs from the name of its connection.
func (d *dialogue) gone(rest string) {
	name, client, _ := strings.Cut(rest, " ")
	d.Drop(name)
	d.left(client)
}

func (d *dialogue) left(name string) {
	d.Until("client disconnected", func() bool {
		list, err := d.server.Messenger().Clients(context.Background())
		require.NoError(d.T, err)
		for _, c := range list {
			if c.Name == name {
				return false
			}
		}
		return true
	})
}

// crowd registers many clients.
func (d *dialogue) crowd(rest string) {
	for i := range d.Number(rest) {
		d.join(fmt.Sprintf("crowd-%d", i))
	}
}

// send sends a message, given as text or as JSON.
func (d *dialogue) send(rest string) {
	label, said, _ := strings.Cut(rest, " ")
	m := &routing.Message{Text: said}
	if strings.HasPrefix(said, "{") {
		var more struct {
			Size int `json:"size"`
		}
		require.NoError(d.T, json.Unmarshal([]byte(d.Fill(said)), m), d.At)
		require.NoError(d.T, json.Unmarshal([]byte(d.Fill(said)), &more), d.At)
		if more.Size > 0 {
			m.Text = strings.Repeat("x", more.Size)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &sending{cancel, make(chan any, 1)}
	d.sent[label] = s
	messages := d.server.Messenger()
	d.all.Go(func() {
		r, err := messages.Send(ctx, m)
		if err != nil {
			s.outcome <- err
			return
		}
		s.outcome <- r
	})
}

func (d *dialogue) result(label string) any {
	return doortest.Await(d.Dialogue, "outcome", d.sent[label].outcome)
}

func (d *dialogue) outcome(rest string) {
	label, want, _ := strings.Cut(rest, " ")
	o := d.result(label)
	r, ok := o.(*routing.Routed)
	require.True(d.T, ok, "%s: %v", d.At, o)
	d.Compare(want, r)
}

func (d *dialogue) failed(rest string) {
	label, why, _ := strings.Cut(rest, " ")
	err, _ := d.result(label).(error)
	require.ErrorContains(d.T, err, why, d.At)
}

// forget stops waiting for an outcome.
func (d *dialogue) forget(label string) {
	d.sent[label].cancel()
	d.failed(label + " context canceled")
}

func (d *dialogue) routed() []*routing.Routed {
	list, err := d.server.Messenger().Messages(context.Background())
	require.NoError(d.T, err)
	return list
}

// messages compares the history, or its length when given a number.
func (d *dialogue) messages(rest string) {
	if n, err := strconv.Atoi(rest); err == nil {
		d.Until(rest+" messages", func() bool { return len(d.routed()) == n })
		return
	}
	d.Compare(rest, d.routed())
}

// settled waits until the newest message matches the JSON.
func (d *dialogue) settled(want string) {
	var wanted struct {
		Status        string
		Notifications []any
	}
	require.NoError(d.T, json.Unmarshal([]byte(want), &wanted), d.At)
	d.Until("newest message", func() bool {
		list := d.routed()
		return len(list) > 0 && list[0].Status == wanted.Status && len(list[0].Notifications) == len(wanted.Notifications)
	})
	d.Compare(want, d.routed()[0])
}

// many waits until the newest message has the given numbers of notifications and of dropped
// notifications.
func (d *dialogue) many(rest string) {
	d.Until("notifications", func() bool {
		list := d.routed()
		return len(list) > 0 && fmt.Sprint(len(list[0].Notifications), " ", list[0].DroppedNotifications) == rest
	})
	for _, n := range d.routed()[0].Notifications {
		require.Equal(d.T, "normal", n.Priority)
	}
}

// state waits until the newest message has a state at a client.
func (d *dialogue) state(rest string) {
	client, want, _ := strings.Cut(rest, " ")
	d.Until("state", func() bool {
		list := d.routed()
		return len(list) > 0 && list[0].Recipient(client) != nil && list[0].Recipient(client).State == want
	})
}

func (d *dialogue) clients(rest string) {
	list, err := d.server.Messenger().Clients(context.Background())
	require.NoError(d.T, err)
	d.Compare(rest, list)
}

// asked compares the last question to the model.
func (d *dialogue) asked(rest string) {
	d.model.mu.Lock()
	defer d.model.mu.Unlock()
	require.NotEmpty(d.T, d.model.asked, d.At)
	d.Compare(rest, d.model.asked[len(d.model.asked)-1])
}
