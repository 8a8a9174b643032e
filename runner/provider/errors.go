package provider

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
)

// Kind says what became of a call that failed.
type Kind string

// The kinds of errors.
const (
	// Refused: the key is missing, or the provider does not take it or has no
	// more credit. No other call will fare better.
	Refused Kind = "refused"
	// OverBudget: the call might have cost more than the run may.
	OverBudget Kind = "over_budget"
	// Throttled: the provider was too busy for as long as it was tried.
	Throttled Kind = "throttled"
	// Unreachable: a fault of the network or the provider, as often as it was tried.
	Unreachable Kind = "unreachable"
	// Invalid: the provider does not take the request, or its answer makes no sense.
	Invalid Kind = "invalid"
	// Silent: nothing came within Request.FirstEvent.
	Silent Kind = "silent"
)

// Error is why a call failed. It holds no key.
type Error struct {
	Kind Kind
	// Where names the API and its address.
	Where string
	// Status is that of HTTP; 0 when there was none.
	Status int
	// Message says what is wrong, and to a person what to do.
	Message string
	// RetryAfter is how long the provider asks to wait; 0 when it does not say.
	RetryAfter time.Duration

	cause error
	over  limit // that a call would go over, of kind OverBudget
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Where != "" {
		b.WriteString(e.Where + ": ")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "%d %s: ", e.Status, statusText(e.Status))
	}
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns what caused the error, if that is an error of its own.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of err or of what it wraps; "" when it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func statusText(status int) string {
	if status == statusOverloaded {
		return "Overloaded"
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Unknown Status"
}

// statusOverloaded is what Anthropic answers when it is too busy.
const statusOverloaded = 529

// fault is what an API said, before it is known what kind of error that is.
type fault struct {
	status  int
	code    string // the API's own name of the error
	message string
	header  http.Header
}

// outOfCredit are the names of errors that look like rate limits and are none:
// waiting does not help.
var outOfCredit = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_error", "credit_balance"}

// kindOf sorts an answer of an API by its status or, for an error in the midst of
// a stream, whose status is that of success, by its code.
func (f fault) kind() Kind {
	for _, code := range outOfCredit {
		if strings.Contains(f.code, code) {
			return Refused
		}
	}
	switch f.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired:
		return Refused
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
		return Throttled
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return Unreachable
	}
	switch {
	case f.status >= 500:
		return Unreachable
	case f.status >= 300:
		return Invalid
	case strings.Contains(f.code, "rate_limit"), strings.Contains(f.code, "overloaded"):
		return Throttled
	case strings.Contains(f.code, "authentication"), strings.Contains(f.code, "permission"):
		return Refused
	case strings.Contains(f.code, "invalid_request"):
		return Invalid
	}
	return Unreachable
}

// maxMessage bounds what is passed on of a message of an API.
const maxMessage = 500

func (f fault) error(where string) *Error {
	e := &Error{Kind: f.kind(), Where: where, RetryAfter: retryAfter(f.header, time.Now())}
	if f.status >= 300 {
		e.Status = f.status
	}
	e.Message = text.Clip(strings.Join(strings.Fields(f.message), " "), maxMessage)
	if e.Message == "" {
		e.Message = "the provider gives no reason"
		if code := strings.TrimSpace(f.code); code != "" {
			e.Message = code
		}
	}
	return e
}

// retryAfter is how long the headers of an answer ask to wait: in milliseconds,
// in seconds or until a date. What makes no sense counts as nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return durationOf(ms / 1000)
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return durationOf(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// durationOf bounds what a stranger may ask for.
func durationOf(seconds float64) time.Duration {
	const most = 24 * 60 * 60
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, most) * float64(time.Second))
}

// transportError tells of a fault on the way to the API or back. When ctx has
// ended, its cause is the error.
func transportError(ctx context.Context, where string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, bufio.ErrTooLong): // a line without end
		return errTooLong
	}
	return &Error{Kind: Unreachable, Where: where, Message: transportMessage(err), cause: err}
}

func transportMessage(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "no such host: " + dns.Name
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection was cut"
	case errors.As(err, &op):
		return fmt.Sprintf("%s: %v", op.Op, op.Err)
	}
	return err.Error()
}
