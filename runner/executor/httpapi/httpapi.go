// Package httpapi is the executor that sends prompts to any HTTP API. The suite describes the requests,
// and the body of the response, or a part of it, is the answer. See [Kind].
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

// Kind is the executor http.
var Kind = executor.Kind{
	Kind: eval.Kind{
		Name:    "http",
		Summary: "Sends each prompt to an HTTP API, in a request that the suite describes. The body of the response is the answer.",
		Options: func() any { return &Options{} },
		Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
	},
	Capabilities: func(executor.Settings) executor.Capabilities { return executor.Capabilities{Stepless: true} },
	Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
		return open(s, os.LookupEnv), nil
	},
	Preflight: func(_ context.Context, s executor.Settings) (findings []executor.Finding) {
		for _, name := range s.Options.(*Options).variables() {
			if _, ok := os.LookupEnv(name); !ok {
				findings = append(findings, executor.Finding{
					Severity: decode.Warning, Code: decode.CodeUnavailable, Message: unset(name).Error() + "; every trial needs it",
				})
			}
		}
		return append(findings, unused(s.Suite, s.Options.(*Options))...)
	},
	Needs: func(s executor.Settings) (list []record.Need) {
		for _, name := range s.Options.(*Options).variables() {
			list = append(list, record.Need{Kind: record.NeedKey, Name: name})
		}
		return list
	},
}

// systemPrompt is the variable with the instructions of a task, see [executor.Instructions].
const systemPrompt = "system_prompt"

// unused reports keys of a suite that do not reach the API.
func unused(s *eval.Suite, o *Options) (findings []executor.Finding) {
	if s == nil {
		return nil
	}
	warn := func(format string, args ...any) {
		findings = append(findings, executor.Finding{Severity: decode.Warning, Code: decode.CodeNoEffect, Message: fmt.Sprintf(format, args...)})
	}
	has := func(key func(*eval.Task) bool) bool { return slices.ContainsFunc(s.Tasks, key) }
	if !slices.Contains(o.expressions(), systemPrompt) && (len(s.Instructions) > 0 ||
		has(func(t *eval.Task) bool { return len(t.Instructions) > 0 || t.Inputs.SystemPrompt != "" })) {
		warn("instruction_files and inputs.system_prompt have no effect with executor http, because no text of its requests contains {{%s}}", systemPrompt)
	}
	if len(s.Config.SkillDirectories) > 0 || has(func(t *eval.Task) bool { return len(t.SkillDirectories) > 0 }) {
		warn("skill_directories has no effect with executor http: the API gets no skills")
	}
	if has(func(t *eval.Task) bool { return len(t.Inputs.Files) > 0 }) {
		warn("inputs.files has no effect with executor http: the API gets no files; only graders see them")
	}
	return findings
}

func unset(name string) error {
	return fmt.Errorf("the environment variable %s, which config names, is not set", text.Clip(name, 60))
}

// Limits of requests and responses, in bytes.
const (
	maxRequest = 16 << 20
	// maxResponse limits a response of which only the start is kept.
	maxResponse = 64 << 20
	// maxReason limits the part of a response in an error.
	maxReason = 500
)

// api sends requests. It is safe for concurrent use.
type api struct {
	suite   *eval.Suite
	options *Options
	client  *http.Client
	own     *http.Transport
	lookup  func(name string) (string, bool) // the environment
	pool    *provider.Pool                   // whose redactor learns the secrets of requests
	ownPool bool
}

func open(s executor.Settings, lookup func(string) (string, bool)) *api {
	own := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second,
	}
	a := &api{suite: s.Suite, options: s.Options.(*Options), own: own, lookup: lookup, pool: s.Providers}
	if a.pool == nil {
		a.pool, a.ownPool = provider.ForSuite(s.Suite, nil), true
	}
	a.client = &http.Client{
		Transport: own,
		// a redirect would send headers with keys to a different address
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a
}

func (a *api) Close() error {
	a.own.CloseIdleConnections()
	if a.ownPool {
		a.pool.Close()
	}
	return nil
}

// Execute sends a request for the prompt and for each follow-up. The last answer is the output.
func (a *api) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	var out executor.Outcome
	err := t.Converse(ctx, func(ctx context.Context, _ int, prompt string) (executor.Outcome, error) {
		t.Transcript.Message("user", prompt)
		var err error
		if out.Output, out.OutputDropped, err = a.ask(ctx, t, prompt); err == nil {
			t.Transcript.Message("assistant", out.Output)
		}
		return out, err
	})
	return out, err
}

// ask sends a request, and returns the answer and how many bytes of it were dropped.
func (a *api) ask(ctx context.Context, t *executor.Trial, prompt string) (answer string, dropped int64, err error) {
	r, where, err := a.request(ctx, t, prompt)
	if err != nil {
		return "", 0, executor.Permanent(a.clean(err))
	}
	meter := provider.MeterOf(ctx)
	res, err := a.client.Do(r)
	if err != nil {
		meter.Answer(0)
		return "", 0, a.fault(ctx, where, err)
	}
	defer res.Body.Close()
	meter.Answer(res.StatusCode)
	var kept strings.Builder
	if _, err = io.Copy(&kept, io.LimitReader(res.Body, executor.MaxOutputBytes)); err == nil {
		dropped, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxResponse-executor.MaxOutputBytes+1))
	}
	if err != nil {
		return "", 0, a.fault(ctx, where, err)
	}
	if dropped > maxResponse-executor.MaxOutputBytes {
		return "", 0, executor.Permanent(fmt.Errorf("%s: the response is longer than %s", where, files.Size(maxResponse)))
	}
	body := strings.ToValidUTF8(kept.String(), "\uFFFD")
	if err := a.status(res, where, body); err != nil {
		return "", 0, err
	}
	if a.options.Answer == "" {
		return body, dropped, nil
	}
	if dropped > 0 {
		return "", 0, executor.Permanent(fmt.Errorf("%s: the response is longer than %s, so config.answer cannot be read",
			where, files.Size(executor.MaxOutputBytes)))
	}
	answer, err = answerIn(body, a.options.Answer)
	if err != nil {
		return "", 0, executor.Permanent(fmt.Errorf("%s: config.answer: %w; the response: %s", where, err, a.excerpt(body)))
	}
	return answer, 0, nil
}

// status returns the error that the status of a response means. Errors of servers that are busy or have a
// fault can pass.
func (a *api) status(res *http.Response, where, body string) error {
	busy := res.StatusCode == http.StatusTooManyRequests
	if !busy && (a.options.AnyStatus || res.StatusCode >= 200 && res.StatusCode < 300) {
		return nil
	}
	err := fmt.Errorf("%s: status %d %s: %s", where, res.StatusCode, http.StatusText(res.StatusCode), a.excerpt(body))
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return executor.Permanent(fmt.Errorf("%s: status %d: waza does not follow redirects; correct config.url", where, res.StatusCode))
	case busy, res.StatusCode == http.StatusRequestTimeout, res.StatusCode >= 500:
		return err
	}
	return executor.Permanent(err)
}

func (a *api) excerpt(body string) string {
	if body = strings.Join(strings.Fields(body), " "); body == "" {
		return "(empty)"
	}
	return text.Clip(a.pool.Redactor().Text(body), maxReason)
}

// fault returns the error of a request that got no response.
func (a *api) fault(ctx context.Context, where string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the address, whose query can contain keys
	}
	return a.clean(fmt.Errorf("%s: %w", where, err))
}

// clean returns the error without secrets.
func (a *api) clean(err error) error {
	if s := err.Error(); a.pool.Redactor().Text(s) != s {
		return errors.New(a.pool.Redactor().Text(s))
	}
	return err
}

// request returns the request for a prompt. where is its method and address, without secrets.
func (a *api) request(ctx context.Context, t *executor.Trial, prompt string) (r *http.Request, where string, err error) {
	f := &filler{api: a, trial: t, prompt: prompt, left: maxRequest}
	if slices.Contains(a.options.expressions(), systemPrompt) {
		if f.instructions, err = executor.Instructions(a.suite, t.Task); err != nil {
			return nil, "", err
		}
	}
	address := f.address(a.options.URL)
	body, isJSON := f.body(a.options.Body)
	if f.err != nil {
		return nil, "", f.err
	}
	method := strings.ToUpper(a.options.Method)
	if method == "" {
		method = http.MethodGet
		if a.options.Body != nil {
			method = http.MethodPost
		}
	}
	r, err = http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, "", errAddress
	}
	query := r.URL.Query()
	for name, value := range a.options.Query {
		query.Set(name, f.text(value))
	}
	if len(a.options.Query) > 0 {
		r.URL.RawQuery = query.Encode()
	}
	switch {
	case isJSON:
		r.Header.Set("Content-Type", "application/json")
	case a.options.Body != nil:
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	r.Header.Set("User-Agent", "waza")
	for name, value := range a.options.Headers {
		if value = f.text(value); strings.EqualFold(name, "Host") {
			r.Host = value
			continue
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			f.fail(fmt.Errorf("headers.%s has a value with line breaks or control characters", name))
		}
		r.Header.Set(name, value)
	}
	return r, a.pool.Redactor().Text(method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.Path), f.err
}

var errAddress = errors.New("config.url must be an http or https URL after its variables are replaced")

// numbered reports whether a key is an index of a list.
func numbered(key string) (i int, ok bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0
}
