// Package router is the executor that routes messages. A trial sends its prompt as a message to
// the clients that the suite describes, and its transcript contains their answers. Register
// [New]; package routing chooses the clients.
package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/routing"
)

// Sender sends messages to the clients that are connected to a server. It is safe for concurrent
// use. [routing.Messenger] implements it.
type Sender interface {
	// Send is like Send of [routing.Messenger].
	Send(ctx context.Context, m *routing.Message) (*routing.Routed, error)
}

// New returns the router. live sends its live messages. If it is nil, the kind can check
// suites with live messages but not be opened for them.
func New(live Sender) executor.Kind {
	return executor.Kind{
		Kind: eval.Kind{
			Name:    "router",
			Summary: "Routes each prompt as a message to clients that the suite describes, and reports which of them took it and why.",
			Options: func() any { return newOptions() },
			Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
			Params:  eval.ParamsInOption,
		},
		Capabilities: func(s executor.Settings) executor.Capabilities {
			o, ok := s.Options.(*Options)
			return executor.Capabilities{Skills: true, Clients: true, Metered: ok && o.asks(s.Model)}
		},
		Open:      func(ctx context.Context, s executor.Settings) (executor.Executor, error) { return open(ctx, s, live) },
		Preflight: preflight,
		Needs: func(s executor.Settings) []record.Need {
			o, ok := s.Options.(*Options)
			if !ok || !o.asks(s.Model) {
				return nil
			}
			api, _ := provider.ForModel(s.Model, provider.API(o.Provider))
			return o.Endpoint.Needs(api)
		},
		LocalReason: func(s executor.Settings) string {
			if o, ok := s.Options.(*Options); ok && o.Router.Live {
				return "router.live sends messages to clients of the waza serve of this machine"
			}
			return ""
		},
	}
}

// preflight reports a missing model name.
func preflight(_ context.Context, s executor.Settings) []executor.Finding {
	if o, ok := s.Options.(*Options); !ok || !o.asks(s.Model) || s.Model != "" {
		return nil
	}
	return []executor.Finding{{
		Severity: decode.Error, Code: decode.CodeMissingField, Message: "config.model is missing; router.by: model requires it",
	}}
}

// router executes the trials of one cell of a run. It has no goroutine.
type router struct {
	options *Options
	answers map[string][]matcher // by client name
	chooser routing.Chooser
	live    Sender         // nil unless messages are live
	pool    *provider.Pool // nil unless a model chooses
	ownPool bool
}

// matcher is an answer to matching messages.
type matcher struct {
	*Answer
	match *regexp.Regexp
}

// open reads the key of the model, so that a run without a key stops before its first trial.
func open(ctx context.Context, s executor.Settings, live Sender) (executor.Executor, error) {
	r := &router{options: s.Options.(*Options), answers: map[string][]matcher{}, chooser: routing.Words{}}
	if r.options.Router.Live {
		if live == nil {
			return nil, executor.Permanent(errors.New("this program has no connection to a waza server, so it cannot reach connected clients"))
		}
		r.live = live
	}
	for i := range r.options.Router.Clients {
		c := &r.options.Router.Clients[i]
		for j := range c.Answers {
			pattern, err := c.Answers[j].pattern()
			if err != nil {
				return nil, executor.Permanent(fmt.Errorf("client %s: %w", c.Name, err))
			}
			r.answers[c.Name] = append(r.answers[c.Name], matcher{&c.Answers[j], pattern})
		}
	}
	if !r.options.asks(s.Model) {
		return r, nil
	}
	r.pool = s.Providers
	if r.pool == nil {
		r.pool, r.ownPool = provider.ForSuite(s.Suite, nil), true
	}
	api, name := provider.ForModel(s.Model, provider.API(r.options.Provider))
	client, err := r.pool.Client(ctx, api, r.options.Endpoint, name)
	if err != nil {
		r.Close()
		return nil, executor.ProviderFault(err)
	}
	r.chooser = &routing.Model{Client: client, Params: r.options.Params, Redact: r.pool.Redactor().Text}
	return r, nil
}

// Close closes the connections to the model.
func (r *router) Close() error {
	if r.ownPool {
		r.pool.Close()
	}
	return nil
}

// Execute routes the prompt and then the follow-ups, each as a separate message. If the model
// fails, it does not choose by words instead.
func (r *router) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	n := &notes{trial: t}
	clients, err := r.clients(t)
	if err != nil {
		return n.outcome(r.options.Router.Output, nil), executor.Permanent(err)
	}
	m := &meter{Chooser: r.chooser}
	err = t.Converse(ctx, func(ctx context.Context, _ int, prompt string) (executor.Outcome, error) {
		t.Transcript.Message("user", prompt)
		routed, err := r.route(ctx, m, clients, message(t, prompt, r.options.Router.Voice))
		n.add(routed, err)
		if err != nil {
			return executor.Outcome{}, executor.ProviderFault(err)
		}
		return n.outcome(r.options.Router.Output, m.usage), nil
	})
	return n.outcome(r.options.Router.Output, m.usage), err
}

// route routes a message to the clients. The result can be nil if the error is set.
func (r *router) route(ctx context.Context, chooser routing.Chooser, clients []routing.Client, m routing.Message) (*routing.Routed, error) {
	if r.live != nil {
		routed, err := r.live.Send(ctx, &m)
		if errors.Is(err, routing.ErrNoServer) {
			err = fmt.Errorf("%w; start one with waza serve", err)
		}
		return routed, err
	}
	// No timeouts: the clients answer at once or never.
	carrier := routing.Router{Chooser: chooser, MaxReroutes: r.options.Router.MaxReroutes}
	p := &post{answers: r.answers, clients: clients}
	p.flight = carrier.NewFlight(routing.Routed{Message: m}, p)
	err := p.flight.Run(ctx)
	return p.flight.Routed(), err
}

// message returns a prompt in the form that the router gets.
func message(t *executor.Trial, text string, voice *float64) routing.Message {
	m := routing.Message{
		ID: routing.NewID(), Text: text, Timestamp: time.Now(), InputMethod: routing.Text,
	}
	if t.Task.Inputs.Voice != nil {
		voice = t.Task.Inputs.Voice
	}
	if voice != nil {
		m.InputMethod, m.Confidence = routing.Voice, voice
	}
	return m
}

// clients returns the clients of the suite, with their descriptions expanded.
func (r *router) clients(t *executor.Trial) ([]routing.Client, error) {
	var list []routing.Client
	for _, c := range r.options.Router.Clients {
		description := t.Expand(c.Description)
		if why := badDescription(description); why != "" {
			return nil, fmt.Errorf("client %s: description %s", c.Name, why)
		}
		list = append(list, routing.Client{Name: c.Name, Description: description, Version: c.Version, Capabilities: c.Capabilities})
	}
	return list, nil
}

// meter counts the cost of choosing clients, including failed choices. It belongs to one trial.
type meter struct {
	routing.Chooser
	usage *record.Usage
}

// Choose implements [routing.Chooser].
func (m *meter) Choose(ctx context.Context, q *routing.Question) (*routing.Choice, error) {
	choice, err := m.Chooser.Choose(ctx, q)
	if choice != nil && choice.By == routing.ByModel {
		m.usage = record.AddUsage(m.usage, &choice.Usage)
	}
	return choice, err
}

// post delivers messages to the described clients.
type post struct {
	answers map[string][]matcher
	clients []routing.Client
	flight  *routing.Flight
}

// Clients implements [routing.Post].
func (p *post) Clients() []routing.Client { return p.clients }

// Changed implements [routing.Post]. It does nothing, because only the final state of a message
// is recorded.
func (p *post) Changed(*routing.Routed) error { return nil }

// Deliver implements [routing.Post]. It answers as defined in the suite.
func (p *post) Deliver(client string, d *routing.Delivery) error {
	a := &Answer{}
	if i := slices.IndexFunc(p.answers[client], func(m matcher) bool { return m.match.MatchString(d.Text) }); i >= 0 {
		a = p.answers[client][i].Answer
	}
	switch {
	case a.Silent:
		return errors.New(routing.ReasonTimeout)
	case a.Reject != nil:
		p.flight.Answer(client, routing.Answer{Kind: routing.Rejected, Reason: *a.Reject})
		return nil
	}
	p.flight.Answer(client, routing.Answer{Kind: routing.Acknowledged})
	if n := a.Notify; n != nil {
		p.flight.Answer(client, routing.Answer{Kind: routing.Notified, Notification: n.of(client)})
	}
	return nil
}

// of returns the notification of a client.
func (n *Notification) of(client string) *routing.Notification {
	shown := &routing.Notification{Client: client, Title: n.Title, Body: n.Body, Priority: n.Priority, At: time.Now()}
	shown.Title = cmp.Or(shown.Title, client)
	shown.Priority = cmp.Or(shown.Priority, "normal")
	return shown
}
