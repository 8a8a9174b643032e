package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// The codes that an error reply of waza may carry. Those from -32700 to
// -32600 and -32000 to -32002 are fixed by the protocol, the others are ours.
const (
	// CodeParseError: the message is not JSON, or not UTF-8.
	CodeParseError = -32700
	// CodeInvalidRequest: the message is JSON but not a request, or too long or too deep to be read as one.
	CodeInvalidRequest = -32600
	// CodeMethodNotFound: no method has this name.
	CodeMethodNotFound = -32601
	// CodeInvalidParams: the method exists, but not with these parameters.
	CodeInvalidParams = -32602
	// CodeInternalError: waza itself is at fault; the log says more.
	CodeInternalError = -32603

	// CodeEvalNotFound: there is no suite at the path given.
	CodeEvalNotFound = -32000
	// CodeValidationFailed: the suite is invalid; data holds the diagnostics.
	CodeValidationFailed = -32001
	// CodeRunFailed: the run could not be started, or could not do its work.
	CodeRunFailed = -32002
	// CodeRunNotFound: no run has this runId.
	CodeRunNotFound = -32003
	// CodeTaskNotFound: the suite has no task with this id.
	CodeTaskNotFound = -32004
	// CodeBusy: the server is busy or a limit is exceeded; the same request may succeed later.
	CodeBusy = -32005
	// CodeUnauthorised: the connection must first call initialize with the right token.
	CodeUnauthorised = -32006
	// CodeShuttingDown: the server is about to end and takes no new work.
	CodeShuttingDown = -32007
	// CodeCancelled: the client cancelled this request with $/cancelRequest.
	CodeCancelled = -32800
)

// An Error is what an error reply says. Whoever returns one decides the reply
// by it; it is not changed once made, so it may be shared.
type Error struct {
	Code    int64          // one of the constants above
	Message string         // one line for people
	Data    map[string]any // details for programs; always an object on the wire, absent when empty
}

// Error gives the message with its code.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// Reply gives e in the library's form, for Conn.ReplyWithError. Data that
// cannot be encoded is left out.
func (e *Error) Reply() *jsonrpc2.Error {
	reply := &jsonrpc2.Error{Code: e.Code, Message: e.Message}
	if len(e.Data) > 0 {
		if raw, err := Encode(e.Data); err == nil {
			reply.Data = &raw
		}
	}
	return reply
}

// Encode gives v as JSON on one line, with "<", ">" and "&" left as they are:
// no browser reads this wire as HTML, but people read it.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// parseError and invalidRequest carry the specification's own words as
// message, and what was wrong with this message in data.
func parseError(reason string) *Error {
	return &Error{Code: CodeParseError, Message: "Parse error", Data: map[string]any{"reason": reason}}
}

func invalidRequest(reason string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Invalid request", Data: map[string]any{"reason": reason}}
}

// busy names the limit that was hit, and its value.
func busy(limit string, value int) *Error {
	return &Error{Code: CodeBusy, Message: "Server busy or limit exceeded", Data: map[string]any{"limit": limit, "value": value}}
}
