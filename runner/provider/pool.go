package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/runner/internal/secrets"
	"waza/runner/pause"
	"waza/runner/record"
)

// PoolOptions configure a [Pool]. The zero value is valid.
type PoolOptions struct {
	// Limits are shared by all pools of a process. Nil means that the pool has its own.
	Limits *Limits
	// Budget limits spending; nil means no limit.
	Budget *Budget
	// Prices are the prices in the suite.
	Prices Prices
	// Redactor learns every key that is used. Nil means that the pool has its own.
	Redactor *secrets.Redactor
	// Transport sends the requests. Nil means that the pool has its own.
	Transport http.RoundTripper
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Pool creates the clients of a run. It is safe for concurrent use.
type Pool struct {
	options PoolOptions
	http    *http.Client
	own     *http.Transport // nil if the caller set Transport

	mu   sync.Mutex // guards keys
	keys map[string]keyResult
}

type keyResult struct {
	key string
	err error
}

// NewPool returns a pool. The caller closes it after the last call.
func NewPool(o PoolOptions) *Pool {
	p := &Pool{options: o, keys: map[string]keyResult{}}
	p.options.Limits = cmp.Or(p.options.Limits, &Limits{})
	p.options.Redactor = cmp.Or(p.options.Redactor, &secrets.Redactor{})
	if p.options.Getenv == nil {
		p.options.Getenv = os.Getenv
	}
	if p.options.Transport == nil {
		p.own = newTransport()
		p.options.Transport = p.own
	}
	p.http = &http.Client{
		Transport: &bounded{p.options.Transport},
		// a redirect would send the key to a different address
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// ForSuite returns a pool with the budget and prices of a suite's config. limits can be nil.
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

// Close closes idle connections.
func (p *Pool) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Redactor returns the redactor, which has learned the keys in use.
func (p *Pool) Redactor() *secrets.Redactor { return p.options.Redactor }

// Budget returns the budget, or nil if there is no limit.
func (p *Pool) Budget() *Budget { return p.options.Budget }

// Price fills the cost of a usage if it is missing and the price of the model is known.
func (p *Pool) Price(model string, u record.Usage, cached Cached) record.Usage {
	if price, known := p.options.Prices.Find(model); known && u.CostUSD == 0 {
		u.CostUSD = cost(price, u, cached)
	}
	return u
}

// Charge counts spending on a model outside a [Client], such as that of an agent that calls its
// provider itself. It computes a missing cost from the model's price, if that is known. The
// error is of kind [OverBudget] if a limit is reached, or [Invalid] if there is a limit on the
// cost but the cost is unknown. The spending counts even then.
func (p *Pool) Charge(model string, u record.Usage) error {
	b := p.options.Budget
	if b == nil {
		return nil
	}
	u = p.Price(model, u, Cached{})
	_, known := p.options.Prices.Find(model)
	if err := b.Spend(u); err != nil {
		return err
	}
	if b.MaxCost > 0 && u.CostUSD == 0 && u.Total() > 0 && !known {
		return unknownPrice(model)
	}
	return nil
}

// Client returns a client for a model. It reads the key, which can run a program, but sends no
// request yet. The error is of kind [Refused] if there is no key.
func (p *Pool) Client(ctx context.Context, api API, e Endpoint, model string) (Client, error) {
	c, s, err := p.connect(ctx, api, e, model)
	if err != nil {
		return nil, err
	}
	switch api {
	case OpenAI:
		c.raw = &asker{s, openAI{s}}
	case Anthropic:
		c.raw = &asker{s, anthropicAPI{s}}
	default:
		return nil, &Error{Kind: Invalid, Message: fmt.Sprintf("unknown API %q; known APIs: openai, anthropic", api)}
	}
	return c, nil
}

// connect returns the parts of a client that do not depend on its requests.
func (p *Pool) connect(ctx context.Context, api API, e Endpoint, model string) (*client, settings, error) {
	if model == "" {
		return nil, settings{}, &Error{Kind: Invalid, Message: "config.model is missing; set it to the model to ask"}
	}
	key, err := p.key(ctx, api, e)
	if err != nil {
		return nil, settings{}, err
	}
	address := e.address(api, p.options.Getenv)
	c := &client{pool: p, model: model, where: fmt.Sprintf("%s at %s", api, display(address))}
	c.limiter = p.options.Limits.Get(string(api) + " " + address + " " + model)
	c.price, c.priced = p.options.Prices.Find(model)
	if b := p.options.Budget; b != nil && b.MaxCost > 0 && !c.priced {
		return nil, settings{}, unknownPrice(model)
	}
	return c, settings{model: model, address: address, key: key, where: c.where, version: e.APIVersion, http: p.http}, nil
}

// settings are common to the clients of all APIs.
type settings struct {
	model, address, key, where, version string
	http                                *http.Client
}

// display returns an address without parts that can be secret.
func display(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "its address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// key reads each key once, because a program that prints a key can ask for a password.
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

// Limits of the tries of one call.
const (
	maxFaults    = 4 // tries that end in a transport fault
	maxThrottled = 20
	faultPause   = 250 * time.Millisecond // before the first retry; doubles
	// guessedOutput is the assumed maximum length of an answer in tokens, before there was one
	// and if the request sets no limit.
	guessedOutput = 1024
)

// client is the result of [Pool.Client]. It adds budget, limiter and retries to the client of an
// API.
type client struct {
	pool    *Pool
	raw     Client
	model   string
	where   string
	limiter *Limiter
	price   eval.Price
	priced  bool
	longest atomic.Int64 // tokens of the longest answer
}

// Complete sends the request until there is an answer or a retry is useless. A retry sends the
// whole request again. Complete does not judge answers.
func (c *client) Complete(ctx context.Context, r *Request) (*Reply, error) {
	streamed := false // the caller has already received a part of the answer
	if text := r.Text; text != nil {
		streaming := *r
		streaming.Text = func(part string) { streamed = true; text(part) }
		r = &streaming
	}
	return c.persist(ctx, r.RetryWithin, c.most(r), func() (reply *Reply, final bool, err error) {
		reply, err = c.raw.Complete(ctx, r)
		c.count(r.estimate(), reply, err)
		return reply, streamed, err
	})
}

// persist calls send until it succeeds or a retry is useless. most is the maximum usage of one call. send
// returns a reply also beside an error; final means that an error must not lead to a retry.
func (c *client) persist(
	ctx context.Context, within time.Duration, most record.Usage, send func() (reply *Reply, final bool, err error),
) (*Reply, error) {
	if err := c.pool.options.Budget.reserve(ctx, most); err != nil {
		return &Reply{}, c.public(err)
	}
	spent := &Reply{} // by all tries
	defer func() { c.pool.options.Budget.settle(most, spent.Usage) }()
	waiting := ctx
	if within > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	meter := MeterOf(ctx)
	for tries, faults, throttled := 1, 0, 0; ; tries++ {
		reply, final, err := c.try(ctx, waiting, meter, send)
		reply.charge(spent)
		reply.Tries = tries
		spent = reply
		var e *Error
		if err == nil || !errors.As(err, &e) {
			return reply, err
		}
		switch {
		case final:
			return reply, c.public(err)
		case e.Kind == Throttled:
			throttled++
			if throttled > maxThrottled || !c.worthWaiting(waiting) {
				return reply, c.public(err)
			}
		case e.Kind == Unreachable:
			faults++
			if faults == maxFaults {
				return reply, c.public(err)
			}
			// A random pause, so that calls that failed together do not retry together.
			start := time.Now()
			cause := pause.About(waiting, faultPause<<(faults-1))
			meter.waitedSince(start)
			switch {
			case ctx.Err() != nil:
				return reply, context.Cause(ctx)
			case cause != nil:
				return reply, c.public(err)
			}
			meter.retry()
		default:
			return reply, c.public(err)
		}
	}
}

// try calls send once. It waits for its turn until waiting ends.
func (c *client) try(
	ctx, waiting context.Context, meter *Meter, send func() (*Reply, bool, error),
) (reply *Reply, final bool, err error) {
	start := time.Now()
	turn, err := c.limiter.acquire(waiting)
	meter.waitedSince(start)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		err = lateError()
	}
	if err != nil {
		return &Reply{}, false, err
	}
	reply, final, err = send()
	var e *Error
	switch {
	case err == nil:
		turn.done(success, 0)
	case errors.As(err, &e) && e.Kind == Throttled:
		turn.done(rejection, e.RetryAfter)
		meter.Answer(http.StatusTooManyRequests)
		return reply, final, err
	default:
		turn.done(neither, 0)
	}
	meter.Answer(0)
	return reply, final, err
}

// worthWaiting reports whether the pause that the provider requests ends before the call's
// deadline.
func (c *client) worthWaiting(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || c.limiter.wait() < time.Until(deadline)-giveUp)
}

// public returns an error for users: it names the address and contains no key.
func (c *client) public(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Where = cmp.Or(e.Where, c.where)
	return named.without(c.pool.options.Redactor)
}

// most returns the maximum usage of the request. If the request does not limit the answer, it
// assumes one and a half times the longest answer until now.
func (c *client) most(r *Request) record.Usage {
	u := record.Usage{InputTokens: r.estimate(), OutputTokens: max(guessedOutput, c.longest.Load()*3/2)}
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if n, ok := number(r.Params[name]); ok && n > 0 {
			u.OutputTokens = int64(n)
			break
		}
	}
	if c.priced {
		u.CostUSD = cost(c.price, u, Cached{})
	}
	return u
}

// number converts a number as decoded from YAML or JSON.
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

// count completes the usage of a reply, including partial ones. It estimates what the provider
// did not count, and adds the price. input is the estimated number of input tokens.
func (c *client) count(input int64, reply *Reply, err error) {
	u := &reply.Usage
	if wrote := reply.written(); u.Total() == 0 && (err == nil || wrote > 0) {
		*u = record.Usage{InputTokens: input, OutputTokens: int64(wrote/bytesPerToken) + 1}
		reply.Cached, reply.Estimated = Cached{}, true
	}
	if u.CostUSD == 0 && c.priced {
		u.CostUSD = cost(c.price, *u, reply.Cached)
	}
	for {
		seen := c.longest.Load()
		if u.OutputTokens <= seen || c.longest.CompareAndSwap(seen, u.OutputTokens) {
			return
		}
	}
}

// ForModel returns the API that serves a model, and the model's name without a prefix that names
// the API ("anthropic:claude-…"). Without such a prefix it returns fallback. If fallback is empty,
// it returns Anthropic for models whose name starts with claude, and OpenAI for all others.
func ForModel(model string, fallback API) (API, string) {
	for _, api := range []API{OpenAI, Anthropic} {
		if rest, ok := strings.CutPrefix(model, string(api)+":"); ok && rest != "" {
			return api, rest
		}
	}
	if rest, ok := strings.CutPrefix(model, "claude"); fallback == "" && ok && rest != "" {
		return Anthropic, model
	}
	return cmp.Or(fallback, OpenAI), model
}
