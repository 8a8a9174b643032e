package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
)

// CodeDoc is an error code with its message and a sentence that documents it.
type CodeDoc struct {
	Code    int64
	Message string
	Doc     string
}

// Codes lists the codes of all error replies, in the order of the reference document. The
// protocol prescribes the messages of the first eight.
var Codes = []CodeDoc{
	{wire.CodeParseError, "Parse error", "The message is not JSON, or not UTF-8."},
	{
		wire.CodeInvalidRequest, "Invalid request",
		"The message is JSON, but not a request of JSON-RPC 2.0, or it is too long or too deeply nested.",
	},
	{
		wire.CodeMethodNotFound, "Method not found",
		"No method has this name; `data.suggestion` is a method with a similar name, if there is one.",
	},
	{wire.CodeInvalidParams, "Invalid params", "The method does not accept these parameters; `data.parameter` names the wrong one."},
	{wire.CodeInternalError, "Internal error", "waza itself failed; its log has the details."},
	{wire.CodeEvalNotFound, "Eval not found", "There is no suite, or no directory, at `data.path`."},
	{
		wire.CodeValidationFailed, "Validation failed",
		"The suite is invalid; `data.diagnostics` contains the reasons, and `data.errors` one line for each.",
	},
	{wire.CodeRunFailed, "Run failed", "The run could not be started or controlled; `data.reason` contains the reason."},
	{wire.CodeRunNotFound, "Run not found", "No run has the id `data.runId`."},
	{wire.CodeTaskNotFound, "Task not found", "The suite has no task `data.taskId`; `data.known` lists its tasks."},
	{wire.CodeBusy, "Server busy or limit exceeded", "The server is busy or a limit is exceeded; `data.limit` names it."},
	{
		wire.CodeUnauthorised, "Unauthorised",
		"The connection must first call `initialize` with the right token, or this user cannot call the method; `data.hint` says which.",
	},
	{wire.CodeShuttingDown, "Shutting down", "The server is shutting down and accepts no new requests."},
	{
		wire.CodeNoServer, "No server",
		"The request needs `waza serve`, which is not running or does not accept requests now; `data.reason` contains the reason.",
	},
	{wire.CodeCancelled, "Request cancelled", "The client cancelled this request with `$/cancelRequest`."},
}

// maxKnown limits the names that an error lists.
const maxKnown = 100

var (
	// ErrUnauthorised means that the client has not shown the token yet.
	ErrUnauthorised = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "call initialize {token} first"}}
	// ErrWrongToken means that the token is missing or wrong.
	ErrWrongToken = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
		Data: map[string]any{"hint": "the token is missing or wrong"}}
	// ErrShuttingDown means that the server accepts no new requests.
	ErrShuttingDown = &wire.Error{Code: wire.CodeShuttingDown, Message: "Shutting down"}
	errPanicked     = &wire.Error{Code: wire.CodeInternalError, Message: "Internal error"}
)

// unknownMethodError means that no method has the name; near is a similar name or empty.
type unknownMethodError struct{ name, near string }

func (e *unknownMethodError) Error() string { return "unknown method " + e.name }

// A ParamError describes a wrong parameter.
type ParamError struct {
	Parameter string // empty if the error is about all parameters
	Message   string
	Data      map[string]any // more details; may be nil
}

// WrongParam returns an error about a parameter: its message is the formatted text after the words
// parameter "NAME".
func WrongParam(name string, data map[string]any, format string, args ...any) *ParamError {
	return &ParamError{Parameter: name, Message: fmt.Sprintf("parameter %q", name) + fmt.Sprintf(format, args...), Data: data}
}

func (e *ParamError) Error() string { return e.Message }

// A SuiteError means that there is no readable suite at a path.
type SuiteError struct {
	Given, Path string // the path as the client wrote it, and resolved
	Err         error
}

func (e *SuiteError) Error() string { return e.Err.Error() }
func (e *SuiteError) Unwrap() error { return e.Err }

// An InvalidSuiteError means that a suite has errors.
type InvalidSuiteError struct {
	Path        string
	Diagnostics decode.Diagnostics
}

func (e *InvalidSuiteError) Error() string { return e.Path + ": the suite is invalid" }

// A TaskNotFoundError means that a suite has no task with this id.
type TaskNotFoundError struct {
	ID    string
	Known []string // task ids of the suite
}

func (e *TaskNotFoundError) Error() string { return fmt.Sprintf("no task %q", e.ID) }

// A RunFailedError means that a run could not be started or controlled.
type RunFailedError struct{ Err error }

func (e *RunFailedError) Error() string { return e.Err.Error() }
func (e *RunFailedError) Unwrap() error { return e.Err }

// FaultOf maps any error to the error reply for the client.
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
		fleet     *record.FleetError
		revision  *record.RevisionError
		question  *record.QuestionError
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
		return param.fault()
	case errors.As(err, &suite):
		return suite.fault()
	case errors.As(err, &invalid):
		return NewFault(wire.CodeValidationFailed, "", map[string]any{
			"path": invalid.Path, "errors": Sentences(invalid.Diagnostics.Errors()), "diagnostics": invalid.Diagnostics,
		})
	case errors.As(err, &task):
		return NewFault(wire.CodeTaskNotFound, "", Compact(map[string]any{
			"taskId": Clip(task.ID), "known": FirstNames(task.Known), "suggestion": decode.Nearest(task.ID, task.Known),
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
	case errors.As(err, &fleet):
		return (&ParamError{Parameter: "fleet", Message: fleet.Error()}).fault()
	case errors.As(err, &revision):
		return (&ParamError{Parameter: "against", Message: revision.Error()}).fault()
	case errors.As(err, &question):
		return (&ParamError{Parameter: question.Parameter(), Message: question.Error()}).fault()
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

// NewFault returns an error reply. Its message is the message of the code, followed by a colon
// and detail, unless detail is empty.
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

// fault describes a wrong parameter.
func (e *ParamError) fault() *wire.Error {
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

// fault describes a path with no suite, or with several.
func (e *SuiteError) fault() *wire.Error {
	data := map[string]any{"path": e.Given, "reason": e.Error()}
	if e.Path != e.Given {
		data["resolved"] = e.Path
	}
	var many *discover.AmbiguousError
	if errors.As(e.Err, &many) && len(many.Suites) > 0 {
		data["parameter"], data["suites"] = "path", FirstNames(many.Suites)
		return NewFault(wire.CodeInvalidParams, many.Error(), data)
	}
	return NewFault(wire.CodeEvalNotFound, "", data)
}

// selectionFault describes filters that select nothing. A named task that does not exist has its
// own code; a tag or trial that no task has is a wrong parameter.
func selectionFault(e *record.SelectionError) *wire.Error {
	data := map[string]any{"reason": e.Error(), "patterns": e.Patterns, "known": FirstNames(e.Known)}
	if e.What == "task" {
		data["taskId"] = strings.Join(e.Patterns, ", ")
		return NewFault(wire.CodeTaskNotFound, "", Compact(data))
	}
	data["parameter"] = map[string]string{"tag": "tags", "trial": "trial"}[e.What]
	return NewFault(wire.CodeInvalidParams, e.Error(), Compact(data))
}

// reviewFault describes a name in a review that does not exist.
func reviewFault(e *regrade.ReviewError) *wire.Error {
	data := map[string]any{
		"reason": e.Error(), "runId": e.RunID, "known": FirstNames(e.Known), "suggestion": decode.Nearest(e.Given, e.Known),
	}
	if e.What == "task" {
		data["taskId"] = Clip(e.Given)
		return NewFault(wire.CodeTaskNotFound, "", Compact(data))
	}
	data["parameter"] = e.What
	return NewFault(wire.CodeInvalidParams, e.Error(), Compact(data))
}

// busyFault reports that the record of a run cannot be changed now, because the run is active or
// somebody else is changing the record.
func busyFault(e *record.BusyError) *wire.Error {
	if e.Running {
		data := map[string]any{"reason": e.Error(), "runId": e.RunID}
		if e.PID != 0 {
			data["pid"] = e.PID
		}
		return NewFault(wire.CodeRunFailed, e.Error(), data)
	}
	return NewFault(wire.CodeBusy, e.Error(),
		map[string]any{"reason": e.Error(), "runId": e.RunID, "limit": "changes of a run's record at once", "value": 1})
}

// Sentences returns each diagnostic as one line.
func Sentences(ds decode.Diagnostics) []string {
	list := make([]string, len(ds))
	for i, d := range ds {
		list[i] = d.String()
	}
	return list
}

// FirstNames returns the first names, at most maxKnown.
func FirstNames(list []string) []string { return list[:min(len(list), maxKnown)] }

// Clip shortens a name from the client before it is sent back.
func Clip(name string) string { return text.ClipRunes(name, 200) }

// Compact removes empty details.
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
