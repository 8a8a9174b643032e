package provider

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
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

// transportError describes a fault on the way to the API or back. When ctx has
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
