package provider

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
)

// fault is an error as reported by an API, not yet classified.
type fault struct {
	status  int
	code    string // the API's own name of the error
	message string
	header  http.Header
}

// outOfCredit are the codes of errors that look like rate limits but cannot be solved by
// waiting.
var outOfCredit = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_error", "credit_balance"}

// kind classifies an error by its status. It classifies an error within a stream, which has the
// status of success, by its code.
func (f fault) kind() Kind {
	for _, code := range outOfCredit {
		if strings.Contains(f.code, code) {
			return Refused
		}
	}
	if throttles(f.status) {
		return Throttled
	}
	switch f.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired:
		return Refused
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

// maxMessage is the maximum length of a quoted message of an API.
const maxMessage = 500

func (f fault) error(where string) *Error {
	e := &Error{Kind: f.kind(), Where: where, RetryAfter: retryAfter(f.header, time.Now())}
	if f.status >= 300 {
		e.Status = f.status
	}
	e.Message = text.Clip(strings.Join(strings.Fields(f.message), " "), maxMessage)
	if e.Message == "" {
		e.Message = "the provider gave no reason"
		if code := strings.TrimSpace(f.code); code != "" {
			e.Message = code
		}
	}
	return e
}

// retryAfter returns the pause that the headers of a response request: in milliseconds, in
// seconds or until a date. Invalid values count as 0.
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

// durationOf converts seconds to a duration and limits it.
func durationOf(seconds float64) time.Duration {
	const most = 24 * 60 * 60
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, most) * float64(time.Second))
}

// faultIn reads the error in the body of a response, or in an event of a stream. Compatible
// servers write errors in many ways.
func faultIn(data []byte) fault {
	var body struct {
		Error           json.RawMessage `json:"error"`
		Message, Detail any
	}
	if json.Unmarshal(data, &body) != nil {
		return fault{message: string(data)}
	}
	var e struct{ Message, Type, Code any }
	var f fault
	switch err := json.Unmarshal(body.Error, &e); {
	case err == nil:
		f.message, f.code = textOf(e.Message), strings.TrimSpace(textOf(e.Code)+" "+textOf(e.Type))
		if status, ok := e.Code.(float64); ok && status >= 300 && status < 600 { // like OpenRouter
			f.status = int(status)
		}
	case json.Unmarshal(body.Error, &f.message) != nil:
		f.message = string(body.Error)
	}
	if f.message == "" {
		f.message = textOf(body.Message) + textOf(body.Detail)
	}
	if f.message == "" && f.code == "" {
		f.message = string(data)
	}
	return f
}

// textOf returns the text of a JSON string or number, or "" for other values.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}
