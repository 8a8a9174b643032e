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

	"waza/runner/internal/secrets"
)

// Kind classifies the failure of a call.
type Kind string

// The kinds of errors.
const (
	// Refused means that the key is missing, or the provider rejects it or has no more credit
	// for it. Every other call would fail, too.
	Refused Kind = "refused"
	// OverBudget means that the call could have exceeded the budget of the run.
	OverBudget Kind = "over_budget"
	// Throttled means that the provider was overloaded during all tries.
	Throttled Kind = "throttled"
	// Unreachable means that all tries failed because of the network or the provider.
	Unreachable Kind = "unreachable"
	// Invalid means that the provider rejects the request, or its answer is invalid.
	Invalid Kind = "invalid"
	// Silent means that nothing arrived within Request.FirstEvent.
	Silent Kind = "silent"
)

// Error is the error of a failed call. It contains no key.
type Error struct {
	Kind Kind
	// Where names the API and its address.
	Where string
	// Status is the HTTP status, or 0 without a response.
	Status int
	// Message describes the problem and, if a person can solve it, the solution.
	Message string
	// RetryAfter is the pause that the provider requests; 0 if it requests none.
	RetryAfter time.Duration

	cause error
	over  limit // exceeded limit, of kind OverBudget
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

// without returns the error with the secrets removed from its text, or e itself if it contains
// none.
func (e *Error) without(known *secrets.Redactor) *Error {
	if text := e.Error(); known.Text(text) == text {
		return e
	}
	clean := *e
	clean.Message, clean.Where, clean.cause = known.Text(e.Message), known.Text(e.Where), nil
	return &clean
}

// Unwrap returns the underlying error, or nil.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the [Error] in err, or "".
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
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

// statusOverloaded is the status of Anthropic's API when it is overloaded.
const statusOverloaded = 529

// transportError describes a fault of the network. If ctx has ended, it returns the cause of ctx
// instead.
func transportError(ctx context.Context, where string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, bufio.ErrTooLong): // a line that is too long
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
		return "the connection broke"
	case errors.As(err, &op):
		return fmt.Sprintf("%s: %v", op.Op, op.Err)
	}
	return err.Error()
}
