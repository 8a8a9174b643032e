package wire

import (
	"encoding/json"
	"fmt"

	"waza/eval/jsonwalk"
)

// The codes of waza's error replies. The protocol prescribes those from -32700 to -32600 and
// from -32000 to -32002; the others are waza's own.
const (
	// CodeParseError: the message is not JSON, or not UTF-8.
	CodeParseError = -32700
	// CodeInvalidRequest: the message is JSON, but not a request, or it is too long or too
	// deeply nested.
	CodeInvalidRequest = -32600
	// CodeMethodNotFound: no method has this name.
	CodeMethodNotFound = -32601
	// CodeInvalidParams: the method does not accept these parameters.
	CodeInvalidParams = -32602
	// CodeInternalError: waza itself failed; the log has the details.
	CodeInternalError = -32603

	// CodeEvalNotFound: there is no suite at the given path.
	CodeEvalNotFound = -32000
	// CodeValidationFailed: the suite is invalid; data contains the diagnostics.
	CodeValidationFailed = -32001
	// CodeRunFailed: the run could not be started or controlled.
	CodeRunFailed = -32002
	// CodeRunNotFound: no run has this runId.
	CodeRunNotFound = -32003
	// CodeTaskNotFound: the suite has no task with this id.
	CodeTaskNotFound = -32004
	// CodeBusy: the server is busy or a limit is exceeded; the same request may succeed later.
	CodeBusy = -32005
	// CodeUnauthorised: the connection must first call initialize with the right token.
	CodeUnauthorised = -32006
	// CodeShuttingDown: the server is shutting down and accepts no new requests.
	CodeShuttingDown = -32007
	// CodeNoServer: the request needs waza serve, which is not running.
	CodeNoServer = -32008
	// CodeCancelled: the client cancelled this request with $/cancelRequest.
	CodeCancelled = -32800
)

// An Error is the error of a reply. A handler returns it to choose the code and message of its
// reply. It is immutable, so it can be shared.
type Error struct {
	Code    int64          `json:"code"`           // one of the constants above
	Message string         `json:"message"`        // one line for people
	Data    map[string]any `json:"data,omitempty"` // details for programs
}

// Error returns the message with its code.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// encode returns the error as JSON, without its data if they cannot be encoded.
func (e *Error) encode() json.RawMessage {
	raw, err := jsonwalk.Encode(e)
	if err != nil {
		raw, _ = jsonwalk.Encode(&Error{Code: e.Code, Message: e.Message}) // a number and a string never fail
	}
	return raw
}

// parseError and invalidRequest use the message of the JSON-RPC specification, and store the
// cause in data.
func parseError(reason string) *Error {
	return &Error{Code: CodeParseError, Message: "Parse error", Data: map[string]any{"reason": reason}}
}

func invalidRequest(reason string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Invalid request", Data: map[string]any{"reason": reason}}
}

// busy names the exceeded limit and its value.
func busy(limit string, value int) *Error {
	return &Error{Code: CodeBusy, Message: "Server busy or limit exceeded", Data: map[string]any{"limit": limit, "value": value}}
}
