package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/rpc/wire"
	"waza/runner"
)

// codeDoc is an error code with its message and one sentence for documents.
type codeDoc struct {
	Code    int64
	Message string
	Doc     string
}

// codes are all codes of error replies, in the order of the reference document.
// The messages of the first eight are fixed by the protocol.
var codes = []codeDoc{
	{wire.CodeParseError, "Parse error", "The message is not JSON, or not UTF-8."},
	{wire.CodeInvalidRequest, "Invalid request", "The message is JSON but no request of JSON-RPC 2.0, or too long or too deep to be read as one."},
	{wire.CodeMethodNotFound, "Method not found", "No method has this name; `data.suggestion` is the one that is near, if any."},
	{wire.CodeInvalidParams, "Invalid params", "The method does not take these parameters; `data.parameter` names the one at fault."},
	{wire.CodeInternalError, "Internal error", "waza itself is at fault; its log says more."},
	{wire.CodeEvalNotFound, "Eval not found", "There is no suite, or no directory, at `data.path`."},
	{wire.CodeValidationFailed, "Validation failed", "The suite is invalid; `data.diagnostics` says why, and `data.errors` in one line each."},
	{wire.CodeRunFailed, "Run failed", "The run could not be started or controlled; `data.reason` says why."},
	{wire.CodeRunNotFound, "Run not found", "No run has the id `data.runId`."},
	{wire.CodeTaskNotFound, "Task not found", "The suite has no task `data.taskId`; `data.known` lists those it has."},
	{wire.CodeBusy, "Server busy or limit exceeded", "The server is busy or a limit is exceeded; `data.limit` names it."},
	{wire.CodeUnauthorised, "Unauthorised", "The connection must first call `initialize` with the right token."},
	{wire.CodeShuttingDown, "Shutting down", "The server is about to end and takes no new work."},
	{wire.CodeCancelled, "Request cancelled", "The client cancelled this request with `$/cancelRequest`."},
}

// maxKnown bounds the names that an error lists.
const maxKnown = 100

var (
	errUnauthorised = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "call initialize {token} first"}}
	errWrongToken = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "the token is missing or wrong"}}
	errShuttingDown = &wire.Error{Code: wire.CodeShuttingDown, Message: "Shutting down"}
	errPanicked     = &wire.Error{Code: wire.CodeInternalError, Message: "Internal error"}
)

// unknownMethodError says that no method has the name.
type unknownMethodError struct{ name, near string }

func (e *unknownMethodError) Error() string { return "unknown method " + e.name }

// paramError says what is wrong with a parameter.
type paramError struct {
	parameter string // empty when it is about all
	message   string
	data      map[string]any // more details; may be nil
}

func (e *paramError) Error() string { return e.message }

// suiteError says that a suite cannot be read at a path.
type suiteError struct {
	given, path string // as the client wrote it, and what that means
	err         error
}

func (e *suiteError) Error() string { return e.err.Error() }
func (e *suiteError) Unwrap() error { return e.err }

// invalidSuiteError says that a suite has errors.
type invalidSuiteError struct {
	path        string
	diagnostics decode.Diagnostics
}

func (e *invalidSuiteError) Error() string { return e.path + ": the suite is invalid" }

// taskNotFoundError says that a suite has no task of that id.
type taskNotFoundError struct {
	id    string
	known []string
}

func (e *taskNotFoundError) Error() string { return fmt.Sprintf("no task %q", e.id) }

// runFailedError says that a run could not be started or controlled.
type runFailedError struct{ err error }

func (e *runFailedError) Error() string { return e.err.Error() }
func (e *runFailedError) Unwrap() error { return e.err }

// faultOf maps any error to what the client is told.
func faultOf(err error) *wire.Error {
	var (
		fault     *wire.Error
		method    *unknownMethodError
		param     *paramError
		suite     *suiteError
		invalid   *invalidSuiteError
		task      *taskNotFoundError
		selection *runner.SelectionError
		unknown   *runner.UnknownExecutorError
		limit     *runner.LimitError
		run       *runFailedError
		review    *runner.ReviewError
		busy      *runner.BusyError
	)
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, context.Canceled):
		return newFault(wire.CodeCancelled, "", nil)
	case errors.As(err, &method):
		return newFault(wire.CodeMethodNotFound, "", compact(map[string]any{"method": clip(method.name), "suggestion": method.near}))
	case errors.As(err, &param):
		return paramFault(param)
	case errors.As(err, &suite):
		return suiteFault(suite)
	case errors.As(err, &invalid):
		return newFault(wire.CodeValidationFailed, "", map[string]any{
			"path": invalid.path, "errors": sentences(invalid.diagnostics.Errors()), "diagnostics": invalid.diagnostics,
		})
	case errors.As(err, &task):
		return newFault(wire.CodeTaskNotFound, "", compact(map[string]any{
			"taskId": clip(task.id), "known": some(task.known), "suggestion": decode.Nearest(task.id, task.known),
		}))
	case errors.As(err, &selection):
		return selectionFault(selection)
	case errors.As(err, &unknown):
		return newFault(wire.CodeInvalidParams, unknown.Error(), compact(map[string]any{
			"parameter": "executor", "executor": clip(unknown.Name), "known": unknown.Known,
			"suggestion": decode.Nearest(unknown.Name, unknown.Known),
		}))
	case errors.As(err, &limit):
		return newFault(wire.CodeBusy, limit.Error(), map[string]any{"limit": limit.What, "value": limit.Limit})
	case errors.As(err, &review):
		return reviewFault(review)
	case errors.As(err, &busy):
		return busyFault(busy)
	case errors.Is(err, runner.ErrRunNotFound):
		return newFault(wire.CodeRunNotFound, "", nil)
	case errors.Is(err, runner.ErrClosed):
		return errShuttingDown
	case errors.As(err, &run):
		return newFault(wire.CodeRunFailed, run.Error(), map[string]any{"reason": run.Error()})
	}
	return newFault(wire.CodeInternalError, "", map[string]any{"reason": err.Error()})
}

// newFault makes an error reply: the message of its code and, after a colon,
// what there is to add.
func newFault(code int64, detail string, data map[string]any) *wire.Error {
	message := ""
	for _, c := range codes {
		if c.Code == code {
			message = c.Message
		}
	}
	if detail != "" {
		message += ": " + detail
	}
	return &wire.Error{Code: code, Message: message, Data: data}
}

func paramFault(e *paramError) *wire.Error {
	data := map[string]any{}
	for k, v := range e.data {
		data[k] = v
	}
	data["reason"] = e.message
	if e.parameter != "" {
		data["parameter"] = e.parameter
	}
	return newFault(wire.CodeInvalidParams, e.message, compact(data))
}

// suiteFault tells of a suite that is not there, or of several.
func suiteFault(e *suiteError) *wire.Error {
	data := map[string]any{"path": e.given, "reason": e.Error()}
	if e.path != e.given {
		data["resolved"] = e.path
	}
	var many *eval.AmbiguousError
	if errors.As(e.err, &many) && len(many.Suites) > 0 {
		data["parameter"], data["suites"] = "path", some(many.Suites)
		return newFault(wire.CodeInvalidParams, many.Error(), data)
	}
	return newFault(wire.CodeEvalNotFound, "", data)
}

// selectionFault tells of filters that leave nothing: a task that is named and
// not there is one thing, a tag or trial that nothing has another.
func selectionFault(e *runner.SelectionError) *wire.Error {
	data := map[string]any{"reason": e.Error(), "patterns": e.Patterns, "known": some(e.Known)}
	if e.What == "task" {
		data["taskId"] = strings.Join(e.Patterns, ", ")
		return newFault(wire.CodeTaskNotFound, "", compact(data))
	}
	data["parameter"] = map[string]string{"tag": "tags", "trial": "trial"}[e.What]
	return newFault(wire.CodeInvalidParams, e.Error(), compact(data))
}

// sentences gives each diagnostic in one line.
func sentences(ds decode.Diagnostics) []string {
	list := make([]string, len(ds))
	for i, d := range ds {
		list[i] = d.String()
	}
	return list
}

// some gives at most maxKnown names.
func some(list []string) []string { return list[:min(len(list), maxKnown)] }

// clip bounds a name that the client gave, for sending it back.
func clip(name string) string { return text.ClipRunes(name, 200) }

// compact drops the details that are empty.
func compact(data map[string]any) map[string]any {
	for k, v := range data {
		switch v := v.(type) {
		case string:
			if v == "" {
				delete(data, k)
			}
		case []string:
			if len(v) == 0 {
				delete(data, k)
			}
		}
	}
	return data
}
