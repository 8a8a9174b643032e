package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/tmaxmax/go-sse"
)

// asker asks a model once, through either API. It is what both have in common:
// the request is JSON, and the answer is a stream of events.
type asker struct {
	settings
	api dialect
}

// dialect is what sets one API apart from the other. It is safe for concurrent use.
type dialect interface {
	// address returns where to ask, below the base address.
	address(base *url.URL) *url.URL
	// sign puts the key, and what else the API wants there, into the headers.
	sign(h http.Header)
	// body returns the request as JSON, without the parameters of the suite.
	body(r *Request) object
	// answer returns what gathers one answer.
	answer() answer
}

// object is a JSON object.
type object = map[string]any

// answer gathers the events of one stream. It is used by one goroutine.
type answer interface {
	// add takes an event. The error is an [*Error], or says that the data is
	// not what the API promises.
	add(e sse.Event) (step, error)
	// begun reports whether something of the answer has come, ended whether its
	// end has been announced.
	begun() bool
	ended() bool
	// reply returns what has come until now.
	reply() *Reply
}

// step is what one event means.
type step struct {
	text string // the part of the answer's text that it holds
	idle bool   // no sign of life of the model
	last bool   // no event that matters follows
}

// Complete implements [Client]. It asks once.
func (c *asker) Complete(ctx context.Context, r *Request) (*Reply, error) {
	watch := newWatch(ctx, r.FirstEvent)
	defer watch.stop()
	a := c.api.answer()
	err := c.ask(watch, r, a)
	if err == nil && !a.ended() {
		err = errCutShort
	}
	reply := a.reply()
	reply.takeAnswer(r.Answer)
	watch.times(reply)
	if err == nil {
		return reply, nil
	}
	if silent := watch.silence(c.where); silent != nil {
		return reply, silent
	}
	return reply, transportError(watch.ctx, c.where, err)
}

// errCutShort says that a stream ended without its end having been announced.
var errCutShort = errors.New("the answer broke off")

// ask sends the request and gives the events of the answer to a.
func (c *asker) ask(w *watch, r *Request, a answer) error {
	req, err := c.request(w.ctx, r)
	if err != nil {
		return &Error{Kind: Invalid, Where: c.where, Message: err.Error()}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		return c.failed(res)
	}
	return receive(res.Body, w, r.Text, a)
}

func (c *asker) request(ctx context.Context, r *Request) (*http.Request, error) {
	base, err := url.Parse(c.settings.address)
	if err != nil {
		return nil, errors.New("the address of the API is not a URL")
	}
	body := c.api.body(r)
	maps.Copy(body, r.Params)
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false) // the model reads < as one token, not as six
	if err := e.Encode(body); err != nil {
		return nil, fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.api.address(base).String(), &data)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "waza")
	c.api.sign(req.Header)
	return req, nil
}

// maxErrorBytes bounds what is read of an answer that says no.
const maxErrorBytes = 64 << 10

// failed reads the error that an API answers with.
func (c *asker) failed(res *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil && len(data) == 0 {
		return err
	}
	f := faultIn(data)
	f.status, f.header = res.StatusCode, res.Header
	return f.error(c.where)
}

// maxEventBytes bounds one event of a stream.
const maxEventBytes = maxAnswerBytes

// receive gives the events of a stream to a, and the parts of its text to text,
// until the stream ends or makes no sense.
func receive(body io.Reader, w *watch, text func(string), a answer) error {
	for event, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEventBytes}) {
		if err != nil {
			return err
		}
		if event.Data == "" {
			continue
		}
		step, err := a.add(event)
		if !step.idle {
			w.event(a.begun())
		}
		if step.text != "" && text != nil {
			text(step.text)
		}
		if err != nil || step.last {
			return err
		}
	}
	return nil
}

// readEvent reads the data of an event. A field that holds something else than the
// API promises keeps its zero value, for the compatible servers are so to
// varying degrees.
func readEvent(data string, v any) error {
	err := json.Unmarshal([]byte(data), v)
	var other *json.UnmarshalTypeError
	if err == nil || errors.As(err, &other) && other.Field != "" {
		return nil
	}
	return fmt.Errorf("the stream is malformed: %w", err)
}

// count is a number of tokens, or an index. What is no number of that kind counts as 0.
type count int64

// UnmarshalJSON takes any number: some servers count in fractions.
func (c *count) UnmarshalJSON(data []byte) error {
	*c = 0
	var n float64
	if json.Unmarshal(data, &n) == nil && n > 0 {
		*c = count(min(n, 1<<53))
	}
	return nil
}
