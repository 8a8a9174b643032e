package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
)

// CodeDoc is an error code with its message and one sentence for documents.
type CodeDoc struct {
	Code    int64
	Message string
	Doc     string
}

// Codes are all codes of error replies, in the order of the reference document.
// The messages of the first eight are fixed by the protocol.
var Codes = []CodeDoc{
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
	// ErrUnauthorised says that the token is still to be shown.
	ErrUnauthorised = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "call initialize {token} first"}}
	// ErrWrongToken says that the token is missing or wrong.
	ErrWrongToken = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "the token is missing or wrong"}}
	// ErrShuttingDown says that the server takes no new work.
	ErrShuttingDown = &wire.Error{Code: wire.CodeShuttingDown, Message: "Shutting down"}
	errPanicked     = &wire.Error{Code: wire.CodeInternalError, Message: "Internal error"}
)

// unknownMethodError says that no method has the name.
type unknownMethodError struct{ name, near string }

func (e *unknownMethodError) Error() string { return "unknown method " + e.name }

// ParamError says what is wrong with a parameter.
type ParamError struct {
	Parameter string // empty when it is about all
	Message   string
	Data      map[string]any // more details; may be nil
}

func (e *ParamError) Error() string { return e.Message }

// SuiteError says that a suite cannot be read at a path.
type SuiteError struct {
	Given, Path string // as the client wrote it, and what that means
	Err         error
}

func (e *SuiteError) Error() string { return e.Err.Error() }
func (e *SuiteError) Unwrap() error { return e.Err }

// InvalidSuiteError says that a suite has errors.
type InvalidSuiteError struct {
	Path        string
	Diagnostics decode.Diagnostics
}

func (e *InvalidSuiteError) Error() string { return e.Path + ": the suite is invalid" }

// TaskNotFoundError says that a suite has no task of that id.
type TaskNotFoundError struct {
	ID    string
	Known []string // what the suite has
}

func (e *TaskNotFoundError) Error() string { return fmt.Sprintf("no task %q", e.ID) }

// RunFailedError says that a run could not be started or controlled.
type RunFailedError struct{ Err error }

func (e *RunFailedError) Error() string { return e.Err.Error() }
func (e *RunFailedError) Unwrap() error { return e.Err }

// FaultOf maps any error to what the client is told.
func FaultOf(err error) *wire.Error {
	var (
		fault     *wire.Error
		method    *unknownMethodError
		param     *ParamError
		suite     *SuiteError
		invalid   *InvalidSuiteError
		task      *TaskNotFoundError
		selection *record.SelectionError
		unknown   *record.UnknownExecutorError
		limit     *record.LimitError
		run       *RunFailedError
		review    *regrade.ReviewError
		busy      *record.BusyError
	)
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, context.Canceled):
		return NewFault(wire.CodeCancelled, "", nil)
	case errors.As(err, &method):
		return NewFault(wire.CodeMethodNotFound, "", Compact(map[string]any{"method": Clip(method.name), "suggestion": method.near}))
	case errors.As(err, &param):
		return paramFault(param)
	case errors.As(err, &suite):
		return suiteFault(suite)
	case errors.As(err, &invalid):
		return NewFault(wire.CodeValidationFailed, "", map[string]any{
			"path": invalid.Path, "errors": Sentences(invalid.Diagnostics.Errors()), "diagnostics": invalid.Diagnostics,
		})
	case errors.As(err, &task):
		return NewFault(wire.CodeTaskNotFound, "", Compact(map[string]any{
			"taskId": Clip(task.ID), "known": Some(task.Known), "suggestion": decode.Nearest(task.ID, task.Known),
		}))
	case errors.As(err, &selection):
		return selectionFault(selection)
	case errors.As(err, &unknown):
		return NewFault(wire.CodeInvalidParams, unknown.Error(), Compact(map[string]any{
			"parameter": "executor", "executor": Clip(unknown.Name), "known": unknown.Known,
			"suggestion": decode.Nearest(unknown.Name, unknown.Known),
		}))
	case errors.As(err, &limit):
		return NewFault(wire.CodeBusy, limit.Error(), map[string]any{"limit": limit.What, "value": limit.Limit})
	case errors.As(err, &review):
		return reviewFault(review)
	case errors.As(err, &busy):
		return busyFault(busy)
	case errors.Is(err, record.ErrRunNotFound):
		return NewFault(wire.CodeRunNotFound, "", nil)
	case errors.Is(err, runner.ErrClosed):
		return ErrShuttingDown
	case errors.Is(err, wire.ErrBodies):
		return NewFault(wire.CodeBusy, "", map[string]any{"limit": "bytes of large replies that wait for clients", "value": maxBodies})
	case errors.As(err, &run):
		return NewFault(wire.CodeRunFailed, run.Error(), map[string]any{"reason": run.Error()})
	}
	return NewFault(wire.CodeInternalError, "", map[string]any{"reason": err.Error()})
}

// NewFault makes an error reply: the message of its code and, after a colon,
// what there is to add.
func NewFault(code int64, detail string, data map[string]any) *wire.Error {
	message := ""
	for _, c := range Codes {
		if c.Code == code {
			message = c.Message
		}
	}
	if detail != "" {
		message += ": " + detail
	}
	return &wire.Error{Code: code, Message: message, Data: data}
}

func paramFault(e *ParamError) *wire.Error {
	data := map[string]any{}
	for k, v := range e.Data {
		data[k] = v
	}
	data["reason"] = e.Message
	if e.Parameter != "" {
		data["parameter"] = e.Parameter
	}
	return NewFault(wire.CodeInvalidParams, e.Message, Compact(data))
}

// suiteFault tells of a suite that is not there, or of several.
func suiteFault(e *SuiteError) *wire.Error {
	data := map[string]any{"path": e.Given, "reason": e.Error()}
	if e.Path != e.Given {
		data["resolved"] = e.Path
	}
	var many *discover.AmbiguousError
	if errors.As(e.Err, &many) && len(many.Suites) > 0 {
		data["parameter"], data["suites"] = "path", Some(many.Suites)
		return NewFault(wire.CodeInvalidParams, many.Error(), data)
	}
	return NewFault(wire.CodeEvalNotFound, "", data)
}

// selectionFault tells of filters that leave nothing: a task that is named and
// not there is one thing, a tag or trial that nothing has another.
func selectionFault(e *record.SelectionError) *wire.Error {
	data := map[string]any{"reason": e.Error(), "patterns": e.Patterns, "known": Some(e.Known)}
	if e.What == "task" {
		data["taskId"] = strings.Join(e.Patterns, ", ")
		return NewFault(wire.CodeTaskNotFound, "", Compact(data))
	}
	data["parameter"] = map[string]string{"tag": "tags", "trial": "trial"}[e.What]
	return NewFault(wire.CodeInvalidParams, e.Error(), Compact(data))
}

// reviewFault tells what a review names that is not there.
func reviewFault(e *regrade.ReviewError) *wire.Error {
	data := map[string]any{
		"reason": e.Error(), "runId": e.RunID, "known": Some(e.Known), "suggestion": decode.Nearest(e.Given, e.Known),
	}
	if e.What == "task" {
		data["taskId"] = Clip(e.Given)
		return NewFault(wire.CodeTaskNotFound, "", Compact(data))
	}
	data["parameter"] = e.What
	return NewFault(wire.CodeInvalidParams, e.Error(), Compact(data))
}

// busyFault says that the record of a run cannot be changed now: not before it is
// over, or not before somebody else has done so.
func busyFault(e *record.BusyError) *wire.Error {
	if e.GoesOn {
		data := map[string]any{"reason": e.Error(), "runId": e.RunID}
		if e.PID != 0 {
			data["pid"] = e.PID
		}
		return NewFault(wire.CodeRunFailed, e.Error(), data)
	}
	return NewFault(wire.CodeBusy, e.Error(), map[string]any{"reason": e.Error(), "runId": e.RunID, "limit": "changes of a run's record at once", "value": 1})
}

// Sentences gives each diagnostic in one line.
func Sentences(ds decode.Diagnostics) []string {
	list := make([]string, len(ds))
	for i, d := range ds {
		list[i] = d.String()
	}
	return list
}

// Some gives at most maxKnown names.
func Some(list []string) []string { return list[:min(len(list), maxKnown)] }

// Clip bounds a name that the client gave, for sending it back.
func Clip(name string) string { return text.ClipRunes(name, 200) }

// Compact drops the details that are empty.
func Compact(data map[string]any) map[string]any {
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
