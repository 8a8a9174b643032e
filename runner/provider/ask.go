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

// asker sends a request to a model once, through either API. It contains the common part:
// requests are JSON, and answers are streams of events.
type asker struct {
	settings
	api dialect
}

// dialect is the part that differs between APIs. It is safe for concurrent use.
type dialect interface {
	// address returns the URL of requests, below the base address.
	address(base *url.URL) *url.URL
	// sign sets the headers that the API requires, such as the key.
	sign(h http.Header)
	// body returns the request as JSON, without the parameters of the suite.
	body(r *Request) object
	// answer returns a new collector for one answer.
	answer() answer
}

// object is a JSON object.
type object = map[string]any

// answer collects the events of one stream. It must not be used concurrently.
type answer interface {
	// add processes an event. The error is an [*Error], or describes data that violates the API.
	add(e sse.Event) (step, error)
	// started reports whether a part of the answer has arrived. ended reports whether its end
	// was announced.
	started() bool
	ended() bool
	// reply returns the answer received until now.
	reply() *Reply
}

// step is the meaning of one event.
type step struct {
	text string // part of the answer's text in this event
	idle bool   // not a sign of life of the model
	last bool   // no relevant event follows
}

// Complete implements [Client]. It sends one request.
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

// errCutShort means that a stream ended without an announced end.
var errCutShort = errors.New("the answer broke off")

// ask sends the request and passes the events of the answer to a.
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
		return failed(res, c.where)
	}
	return receive(res.Body, w, r.Text, a)
}

func (c *asker) request(ctx context.Context, r *Request) (*http.Request, error) {
	base, err := url.Parse(c.settings.address)
	if err != nil {
		return nil, errors.New("the address of the API must be a URL")
	}
	body := c.api.body(r)
	maps.Copy(body, r.Params)
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false) // the model reads < as one token, and an escape as six
	if err := e.Encode(body); err != nil {
		return nil, fmt.Errorf("cannot encode the request as JSON: %w", err)
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

// maxErrorBytes is the number of bytes read of an error response.
const maxErrorBytes = 64 << 10

// failed reads the error with which an API answers.
func failed(res *http.Response, where string) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil && len(data) == 0 {
		return err
	}
	f := faultIn(data)
	f.status, f.header = res.StatusCode, res.Header
	return f.error(where)
}

// maxEventBytes is the maximum size of one event of a stream.
const maxEventBytes = maxAnswerBytes

// receive passes the events of a stream to a, and the parts of its text to text, until the
// stream ends or is invalid.
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
			w.event(a.started())
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

// readEvent decodes the data of an event. A field of the wrong type keeps its zero value,
// because compatible servers deviate from the API in many ways.
func readEvent(data string, v any) error {
	err := json.Unmarshal([]byte(data), v)
	var other *json.UnmarshalTypeError
	if err == nil || errors.As(err, &other) && other.Field != "" {
		return nil
	}
	return fmt.Errorf("malformed stream: %w", err)
}

// count is a number of tokens, or an index. Any other value counts as 0.
type count int64

// UnmarshalJSON accepts any number, because some servers send fractions.
func (c *count) UnmarshalJSON(data []byte) error {
	*c = 0
	var n float64
	if json.Unmarshal(data, &n) == nil && n > 0 {
		*c = count(min(n, 1<<53))
	}
	return nil
}
