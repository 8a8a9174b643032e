package router

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/provider"
	"waza/runner/routing"
)

// Options are the keys of a suite's config for the router.
type Options struct {
	provider.Endpoint `yaml:",inline"`
	// API that serves config.model. By default it depends on the model's name.
	Provider string `yaml:"provider" jsonschema:"enum=openai,enum=anthropic"`
	// Parameters of the API under their API names: temperature, max_tokens, top_p, …
	Params map[string]any `yaml:"params"`
	// Clients that get the messages, and how they are chosen.
	Router Router `yaml:"router"`
}

// Router defines which clients get messages, and how they are chosen.
type Router struct {
	// Clients among which messages are routed, at most 100. They exist only for the run.
	Clients []Client `yaml:"clients"`
	// Send the messages to clients connected to waza serve instead of described ones. These
	// clients belong to people. The server chooses among them as for any message.
	Live bool `yaml:"live"`
	// How clients are chosen for a message that names none: model asks config.model, words
	// compares the message with the descriptions. The default is model if config.model is set,
	// and words otherwise.
	By string `yaml:"by" jsonschema:"enum=model,enum=words"`
	// How often a message is routed again after rejections.
	MaxReroutes int `yaml:"max_reroutes" jsonschema:"minimum=0,maximum=10,default=3"`
	// Confidence of speech recognition, 0 to 1. If set, the prompts are sent as spoken messages,
	// otherwise as typed ones.
	Voice *float64 `yaml:"voice" jsonschema:"minimum=0,maximum=1"`
	// Output of a trial: text for people, or json, an object with recipients and messages for
	// graders such as json_schema.
	Output string `yaml:"output" jsonschema:"enum=text,enum=json,default=text"`
}

// Client describes a client: how it registers, and how it answers.
type Client struct {
	// Name of the client: a letter, then letters, digits, hyphens and underscores, at most 64 in all. Names are unique regardless of case.
	Name string `yaml:"name" jsonschema:"required"`
	// Description of the messages the client takes, at most 1024 characters. Template variables
	// are expanded, including parameters of config.matrix.
	Description string `yaml:"description" jsonschema:"required"`
	// Hints about the abilities of the client.
	Capabilities []string `yaml:"capabilities"`
	// Version of the client.
	Version string `yaml:"version"`
	// Answers of the client. The first one that matches a message is used. The client takes
	// messages that match none.
	Answers []Answer `yaml:"answers"`
}

// Answer is the answer of a client to a message. Without further keys the client takes the
// message.
type Answer struct {
	// Regular expression (RE2, in any letter case) for the text that the client gets. By default
	// every text matches.
	Match string `yaml:"match"`
	// Reject the message for this reason, which can be empty.
	Reject *string `yaml:"reject"`
	// Do not answer. This counts as a rejection with the reason "Response timeout". No time
	// passes.
	Silent bool `yaml:"silent"`
	// Notification for the user after the client has taken the message.
	Notify *Notification `yaml:"notify"`
}

// Notification is a message of a client to the user.
type Notification struct {
	// Title; by default the name of the client.
	Title string `yaml:"title"`
	// Text below the title.
	Body string `yaml:"body"`
	// Urgency of the notification.
	Priority string `yaml:"priority" jsonschema:"enum=low,enum=normal,enum=high,default=normal"`
}

// Limits of the protocol, and of the descriptions in a suite.
const (
	maxClients     = 100
	maxDescription = 1024 // characters
	maxAnswers     = 100
)

const (
	outputText = "text"
	outputJSON = "json"
)

func newOptions() *Options {
	return &Options{Router: Router{MaxReroutes: routing.DefaultReroutes, Output: outputText}}
}

// ProviderEndpoint returns the endpoint of the suite's models. Judges use it, too.
func (o *Options) ProviderEndpoint() provider.Endpoint { return o.Endpoint }

// ClientNames implements [eval.Addresser].
func (o *Options) ClientNames() (names []string, others bool) {
	for _, c := range o.Router.Clients {
		names = append(names, c.Name)
	}
	return names, o.Router.Live
}

// asks reports whether the run asks a model to choose the clients.
func (o *Options) asks(model string) bool {
	return !o.Router.Live && (o.Router.By == routing.ByModel || o.Router.By == "" && model != "")
}

// clientName matches the names that the protocol allows.
var clientName = text.Pattern(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

func check(c *eval.Check, o *Options) {
	o.Endpoint.Check(c)
	r := &o.Router
	switch n := len(r.Clients); {
	case r.Live && n > 0:
		c.Errorf(decode.At("router", "live"), decode.CodeInvalidValue,
			"router.clients must be empty if router.live is set, because messages go to connected clients")
	case n == 0 && !r.Live:
		c.Errorf(decode.At("router"), decode.CodeMissingField, "router.clients is empty; describe at least one client, or set live: true")
	case n > maxClients:
		c.Errorf(decode.At("router", "clients"), decode.CodeTooLarge, "router.clients must have at most %d clients, got %d", maxClients, n)
	}
	seen := map[string]bool{}
	for i := range r.Clients {
		client := &r.Clients[i]
		at := func(elems ...any) decode.Path { return append(decode.At("router", "clients", i), elems...) }
		switch folded := strings.ToLower(client.Name); {
		case client.Name == "": // reported as missing
		case !clientName().MatchString(client.Name):
			c.Errorf(at("name"), decode.CodeInvalidValue,
				"router.clients[%d].name: invalid client name %q; use a letter, then letters, digits, hyphens and underscores, at most 64 in all",
				i, text.Clip(client.Name, 80))
		case seen[folded]:
			c.Errorf(at("name"), decode.CodeInvalidValue,
				"router.clients[%d].name: duplicate client name %q; names must be unique regardless of case", i,
				client.Name)
		default:
			seen[folded] = true
		}
		if why := badDescription(client.Description); why != "" && !strings.Contains(client.Description, "{{") && client.Description != "" {
			c.Errorf(at("description"), decode.CodeInvalidValue, "router.clients[%d].description %s", i, why)
		}
		checkAnswers(c, i, client)
	}
	unused(c, o)
}

// badDescription returns the reason why a client cannot register with a description, or "".
func badDescription(d string) string {
	switch n := utf8.RuneCountInString(d); {
	case strings.TrimSpace(d) == "":
		return "must not be blank"
	case n > maxDescription:
		return fmt.Sprintf("must have at most %d characters, got %d", maxDescription, n)
	}
	return ""
}

func checkAnswers(c *eval.Check, client int, of *Client) {
	at := func(i int, key string) decode.Path { return decode.At("router", "clients", client, "answers", i, key) }
	if n := len(of.Answers); n > maxAnswers {
		c.Errorf(decode.At("router", "clients", client, "answers"), decode.CodeTooLarge,
			"router.clients[%d].answers must have at most %d answers, got %d", client, maxAnswers, n)
	}
	for i, a := range of.Answers {
		where := fmt.Sprintf("router.clients[%d].answers[%d]", client, i)
		if _, err := a.pattern(); err != nil {
			c.Regexp(at(i, "match"), a.Match)
		}
		switch {
		case a.Silent && (a.Reject != nil || a.Notify != nil):
			c.Errorf(at(i, "silent"), decode.CodeInvalidValue, "%s: silent excludes reject and notify", where)
		case a.Reject != nil && a.Notify != nil:
			c.Errorf(at(i, "notify"), decode.CodeInvalidValue, "%s: reject excludes notify", where)
		}
		if a.Match == "" && i < len(of.Answers)-1 {
			c.Warnf(at(i, "match"), decode.CodeNoEffect, "%s matches every message, so later answers have no effect", where)
		}
	}
}

// pattern returns the compiled match.
func (a *Answer) pattern() (*regexp.Regexp, error) { return regexp.Compile("(?i)" + a.Match) }

// unused reports settings that have no effect on routing.
func unused(c *eval.Check, o *Options) {
	c.UnusedByAgents("clients get only messages")
	ofModels := []decode.Path{decode.At("params"), decode.At("base_url"), decode.At("provider")}
	switch {
	case o.Router.Live:
		c.Unused("the server chooses the clients (router.live)",
			append(ofModels, decode.At("router", "by"), decode.At("router", "max_reroutes"))...)
	case o.Router.By == routing.ByWords:
		c.Unused("words choose the clients (router.by)", ofModels...)
	}
}
