package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/runner/pause"
)

// PoolOptions say how a [Pool] works. The zero value works.
type PoolOptions struct {
	// Limits are shared by all pools of a process; nil means the pool's own.
	Limits *Limits
	// Budget is what may be spent; nil means no limit.
	Budget *Budget
	// Prices are those of the suite.
	Prices Prices
	// Redactor learns every key that is used; nil means the pool's own.
	Redactor *Redactor
	// Transport carries the requests; nil means one of the pool's own.
	Transport http.RoundTripper
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Pool gives a run its clients. It is safe for concurrent use.
type Pool struct {
	options PoolOptions
	http    *http.Client
	own     *http.Transport // nil when the transport is the caller's

	mu   sync.Mutex // guards keys
	keys map[string]keyResult
}

type keyResult struct {
	key string
	err error
}

// NewPool makes a pool. The caller closes it after the last call.
func NewPool(o PoolOptions) *Pool {
	p := &Pool{options: o, keys: map[string]keyResult{}}
	if p.options.Limits == nil {
		p.options.Limits = &Limits{}
	}
	if p.options.Redactor == nil {
		p.options.Redactor = &Redactor{}
	}
	if p.options.Getenv == nil {
		p.options.Getenv = os.Getenv
	}
	if p.options.Transport == nil {
		p.own = newTransport()
		p.options.Transport = p.own
	}
	p.http = &http.Client{
		Transport: &bounded{p.options.Transport},
		// A redirect would carry the key to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// ForSuite makes a pool with the budget and prices of a suite's config. limits
// may be nil.
func ForSuite(s *eval.Suite, limits *Limits) *Pool {
	o := PoolOptions{Limits: limits}
	if s != nil {
		c := &s.Config
		o.Prices = c.Prices
		if c.MaxCost > 0 || c.MaxTokens > 0 {
			o.Budget = &Budget{MaxCost: c.MaxCost, MaxTokens: c.MaxTokens}
		}
	}
	return NewPool(o)
}

// Close ends the connections that are kept open.
func (p *Pool) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Redactor knows the keys that are in use.
func (p *Pool) Redactor() *Redactor { return p.options.Redactor }

// Budget is what may be spent; nil when there is no limit.
func (p *Pool) Budget() *Budget { return p.options.Budget }

// Price adds the price of a usage of a model where it has no cost and the model's
// price is known.
func (p *Pool) Price(model string, u Usage) Usage {
	if price, known := p.options.Prices.Find(model); known && u.CostUSD == 0 {
		u.CostUSD = cost(price, u)
	}
	return u
}

// Charge counts what was spent on a model by other ways than a [Client], such as
// an agent that asks its provider itself. A cost that is not known is reckoned
// from the model's price, if that is. The error is of kind [OverBudget] when no
// more should be spent, or [Invalid] when there is a limit on the cost and no way
// to know it; what was spent counts all the same.
func (p *Pool) Charge(model string, u Usage) error {
	b := p.options.Budget
	if b == nil {
		return nil
	}
	u = p.Price(model, u)
	_, known := p.options.Prices.Find(model)
	if err := b.Spend(u); err != nil {
		return err
	}
	if b.MaxCost > 0 && u.CostUSD == 0 && u.Tokens() > 0 && !known {
		return unknownPrice(model)
	}
	return nil
}

// Client returns a client for a model. It reads the key, which may run a
// program, but asks the provider nothing yet. The error is of kind [Refused]
// when there is no key.
func (p *Pool) Client(ctx context.Context, api API, e Endpoint, model string) (Client, error) {
	if model == "" {
		return nil, &Error{Kind: Invalid, Message: "no model is named: set config.model"}
	}
	key, err := p.key(ctx, api, e)
	if err != nil {
		return nil, err
	}
	address := e.address(api, p.options.Getenv)
	c := &client{pool: p, model: model, where: fmt.Sprintf("%s at %s", api, display(address))}
	c.limiter = p.options.Limits.Get(string(api) + " " + address + " " + model)
	c.price, c.priced = p.options.Prices.Find(model)
	if b := p.options.Budget; b != nil && b.MaxCost > 0 && !c.priced {
		return nil, unknownPrice(model)
	}
	s := settings{model: model, address: address, key: key, where: c.where, version: e.APIVersion, http: p.http}
	switch api {
	case OpenAI:
		c.raw = &asker{s, openAI{s}}
	case Anthropic:
		c.raw = &asker{s, anthropicAPI{s}}
	default:
		return nil, &Error{Kind: Invalid, Message: fmt.Sprintf("unknown API %q; the known ones are openai and anthropic", api)}
	}
	return c, nil
}

// settings are what the clients of both APIs are made with.
type settings struct {
	model, address, key, where, version string
	http                                *http.Client
}

// display is an address without what may be secret in it.
func display(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "its address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// key reads each key once, for a program that prints one may ask for a password.
func (p *Pool) key(ctx context.Context, api API, e Endpoint) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := fmt.Sprintf("%s %s %s %q", api, e.address(api, p.options.Getenv), e.APIKeyEnv, e.APIKeyCommand)
	r, ok := p.keys[name]
	if !ok {
		r.key, r.err = e.key(ctx, api, p.options.Getenv)
		if ctx.Err() == nil {
			p.keys[name] = r
		}
		p.options.Redactor.Add(r.key)
	}
	return r.key, r.err
}

// Bounds on the tries of one call.
const (
	maxFaults    = 4 // tries that end in a fault of the transport
	maxThrottled = 20
	faultPause   = 250 * time.Millisecond // before the first retry; doubles
	// guessedOutput is how many tokens an answer may have, while none was seen
	// and the request sets no limit.
	guessedOutput = 1024
)

// client is what [Pool.Client] returns: it adds budget, limiter and retries to
// the client of an API.
type client struct {
	pool    *Pool
	raw     Client
	model   string
	where   string
	limiter *Limiter
	price   eval.Price
	priced  bool
	longest atomic.Int64 // most tokens an answer had
}

// Complete asks until there is an answer or no use in asking again. A retry asks
// the whole question again. Verdicts are the caller's business and never retried.
func (c *client) Complete(ctx context.Context, r *Request) (*Reply, error) {
	most := c.most(r)
	if err := c.pool.options.Budget.reserve(ctx, most); err != nil {
		return &Reply{}, c.public(err)
	}
	var spent Usage
	defer func() { c.pool.options.Budget.settle(most, spent) }()
	streamed := false // a part of the answer is with the caller, who cannot give it back
	if text := r.Text; text != nil {
		streaming := *r
		streaming.Text = func(part string) { streamed = true; text(part) }
		r = &streaming
	}
	for tries, faults, throttled := 1, 0, 0; ; tries++ {
		reply, err := c.try(ctx, r)
		spent = spent.Add(reply.Usage)
		reply.Usage, reply.Tries = spent, tries
		var e *Error
		if err == nil || !errors.As(err, &e) {
			return reply, err
		}
		switch {
		case streamed:
			return reply, c.public(err)
		case e.Kind == Throttled:
			throttled++
			if throttled > maxThrottled || !c.worthWaiting(ctx) {
				return reply, c.public(err)
			}
		case e.Kind == Unreachable:
			faults++
			if faults == maxFaults {
				return reply, c.public(err)
			}
			// About that long, so that calls which met the same fault do not come back together.
			if cause := pause.About(ctx, faultPause<<(faults-1)); cause != nil {
				return reply, cause
			}
		default:
			return reply, c.public(err)
		}
	}
}

// try asks once.
func (c *client) try(ctx context.Context, r *Request) (*Reply, error) {
	turn, err := c.limiter.acquire(ctx)
	if err != nil {
		return &Reply{}, err
	}
	reply, err := c.raw.Complete(ctx, r)
	var e *Error
	switch {
	case err == nil:
		turn.done(success, 0)
	case errors.As(err, &e) && e.Kind == Throttled:
		turn.done(rejection, e.RetryAfter)
	default:
		turn.done(neither, 0)
	}
	c.count(r, reply, err)
	return reply, err
}

// worthWaiting reports whether the pause that the provider asks for ends before
// the call's deadline does.
func (c *client) worthWaiting(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || c.limiter.wait() < time.Until(deadline)-giveUp)
}

// public returns an error that users may see: it names the place and holds no key.
func (c *client) public(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Where == "" {
		named := *e
		named.Where = c.where
		err = &named
	}
	return c.pool.options.Redactor.error(err)
}

// most is what the request may cost at most. Where it sets no limit on the
// answer, that is the longest answer so far, and a half.
func (c *client) most(r *Request) Usage {
	u := Usage{InputTokens: r.estimate(), OutputTokens: max(guessedOutput, c.longest.Load()*3/2)}
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if n, ok := number(r.Params[name]); ok && n > 0 {
			u.OutputTokens = int64(n)
			break
		}
	}
	if c.priced {
		u.CostUSD = cost(c.price, u)
	}
	return u
}

// number reads a number as YAML and JSON give it.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// count completes the usage of a reply: it guesses what the provider did not
// count, also of an answer that broke off, and adds the price.
func (c *client) count(r *Request, reply *Reply, err error) {
	u := &reply.Usage
	if wrote := reply.written(); u.Tokens() == 0 && (err == nil || wrote > 0) {
		*u = Usage{InputTokens: r.estimate(), OutputTokens: int64(wrote/bytesPerToken) + 1, Estimated: true}
	}
	if u.CostUSD == 0 && c.priced {
		u.CostUSD = cost(c.price, *u)
	}
	for {
		seen := c.longest.Load()
		if u.OutputTokens <= seen || c.longest.CompareAndSwap(seen, u.OutputTokens) {
			return
		}
	}
}

// ForModel returns the API that serves a model, and the model's name without the
// API's in front ("anthropic:claude-…"). Without a name in front, models called
// claude are Anthropic's and others are asked by fallback, or OpenAI's when that
// is empty.
func ForModel(model string, fallback API) (API, string) {
	for _, api := range []API{OpenAI, Anthropic} {
		if rest, ok := cutPrefix(model, string(api)+":"); ok {
			return api, rest
		}
	}
	if fallback == "" {
		if _, ok := cutPrefix(model, "claude"); ok {
			return Anthropic, model
		}
	}
	return cmp.Or(fallback, OpenAI), model
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}
