// Package webhook grades a trial by the verdict of a server: see [Kind]. Use it through the registry of
// [waza/runner/grader/builtin].
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/internal/given"
	"waza/runner/pause"
)

// Kind is the webhook grader.
var Kind = grader.KindOf(eval.Kind{
	Name: "webhook",
	Summary: "Sends the output and the context of the task to a server, as JSON, and takes its verdict: an object with pass, and perhaps " +
		"score and reason.",
	Options: func() any { return &Options{Timeout: defaultTimeout} },
}, check, build)

// defaultTimeout is the default of Options.Timeout.
const defaultTimeout = 5

// Options holds the options of the webhook grader.
type Options struct {
	// Address of the server. It gets a POST request with output, which is a text or what transform makes of it, and context,
	// which is inputs.context of the task. The answer is an object with pass (true or false), score (a number from 0 to 1,
	// by default 1 if pass is true, else 0) and reason. Any other answer is an error.
	URL string `yaml:"url" jsonschema:"required"`
	// Time limit of one request, in seconds. A request that fails because of the network or a busy server is sent up to
	// three times.
	Timeout float64 `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`
}

const (
	maxAnswer = 1 << 20 // bytes of an answer
	maxReason = 8 << 10 // bytes of its reason
	maxTries  = 3
	firstWait = 250 * time.Millisecond // before the second try; doubles
)

var errAddress = errors.New("url must be an http or https address, such as http://127.0.0.1:8080/grade")

// addressOf returns the address in a text. The error does not contain the text, which can contain a secret.
func addressOf(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errAddress
	}
	return u, nil
}

func check(c *eval.Check, o *Options) {
	if _, err := addressOf(o.URL); err != nil {
		c.Errorf(decode.At("url"), decode.CodeInvalidValue, "%v", err)
	}
}

func build(o *Options, _ *grader.Env) (grader.Grader, error) {
	address, err := addressOf(o.URL)
	if err != nil {
		return nil, err
	}
	return &hook{
		address: address, timeout: time.Duration(o.Timeout * float64(time.Second)),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    15 * time.Second,
				DisableKeepAlives:      true, // so that nothing is left to close
				MaxResponseHeaderBytes: maxAnswer,
			},
			// a redirect would send the output to a different address
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// A hook asks a server. It is safe for concurrent use.
type hook struct {
	address *url.URL
	timeout time.Duration
	client  *http.Client
}

// A verdict is the answer of the server.
type verdict struct {
	Pass   given.Bool  `json:"pass"`
	Score  given.Score `json:"score"`
	Reason any         `json:"reason"`
}

func (h *hook) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.OutputCut(); err != nil {
		return grader.Score{}, err
	}
	body := map[string]any{"output": s.Output, "context": map[string]any{}}
	if s.Value != nil {
		body["output"] = s.Value
	}
	if s.Task != nil && s.Task.Inputs.Context != nil {
		body["context"] = jsonwalk.Plain(s.Task.Inputs.Context)
	}
	data, err := jsonwalk.Encode(body)
	if err != nil {
		return grader.Score{}, err
	}
	for try := 1; ; try++ {
		score, err := h.ask(ctx, data)
		if cause := context.Cause(ctx); cause != nil {
			return grader.Score{}, cause
		}
		passing := (*passingError)(nil)
		switch {
		case err == nil:
			return score, nil
		case !errors.As(err, &passing) || try == maxTries:
			return grader.Score{}, executor.Permanent(fmt.Errorf("webhook at %s://%s: %w", h.address.Scheme, h.address.Host, err))
		}
		if err := pause.About(ctx, firstWait<<(try-1)); err != nil {
			return grader.Score{}, err
		}
	}
}

// A passingError is the fault of a network or a server that another try can overcome.
type passingError struct{ error }

// ask sends one request. Errors contain no part of the address.
func (h *hook) ask(ctx context.Context, data []byte) (grader.Score, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address.String(), bytes.NewReader(data))
	if err != nil {
		return grader.Score{}, errAddress
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "waza")
	res, err := h.client.Do(req)
	if err != nil {
		return grader.Score{}, h.fault(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch code := res.StatusCode; {
	case err != nil:
		return grader.Score{}, h.fault(ctx, err)
	case len(answer) > maxAnswer:
		return grader.Score{}, fmt.Errorf("the answer is longer than %s", files.Size(maxAnswer))
	case code >= 300 && code < 400:
		return grader.Score{}, fmt.Errorf("status %d: waza does not follow redirects; correct url", code)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return grader.Score{}, &passingError{fmt.Errorf("status %d %s", code, http.StatusText(code))}
	case code < 200 || code >= 300:
		return grader.Score{}, fmt.Errorf("status %d %s", code, http.StatusText(code))
	}
	return scoreIn(answer)
}

// fault returns the error of a request that got no answer.
func (h *hook) fault(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &passingError{fmt.Errorf("no answer within %v", h.timeout)}
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // without the address
	}
	return &passingError{err}
}

// scoreIn returns the score that an answer gives.
func scoreIn(answer []byte) (grader.Score, error) {
	var v verdict
	var object map[string]json.RawMessage
	if jsonwalk.Depth(string(answer)) > decode.MaxDepth || json.Unmarshal(answer, &object) != nil {
		return grader.Score{}, fmt.Errorf("the answer must be an object with pass, got %s", grader.Excerpt(string(answer)))
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return grader.Score{}, fmt.Errorf("the answer: %w", err)
	}
	if !v.Pass.Given {
		return grader.Score{}, fmt.Errorf("the answer has no pass: %s", grader.Excerpt(string(answer)))
	}
	s := grader.Score{Passed: v.Pass.Value, Score: v.Score.Value}
	if !v.Score.Given && v.Pass.Value {
		s.Score = 1
	}
	if reason, _ := v.Reason.(string); strings.TrimSpace(reason) != "" {
		s.Feedback = text.Clip(strings.TrimSpace(reason), maxReason)
	} else if !s.Passed {
		s.Feedback = "the webhook returned pass: false"
	}
	return s, nil
}
