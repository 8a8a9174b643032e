// Package link connects the waza processes of one user to the server of their state directory.
// The server calls [Listen] and then [Server.Serve]. All other processes call [NewClient]. A
// client implements [remote.Hub] and has [Client.Browsers] and [Client.Messenger].
//
// Both ends speak JSON-RPC 2.0, one message per line, over a unix socket that only this user can
// open:
//
//	reserve  {key, want}        → {clientId}   when an agent has room
//	evaluate {key, evaluation}  → {answer}     in the room of that key
//	status   {key, status}      ←              notification: progress of the agent
//	cancel   {key}              notification: end the request of that key
//	release  {key}              notification: release the room
//	agents, watch {key}, kick   the directory; watch sends agent {key, agent} notifications
//	dashboard                   → {url}        a link that opens the dashboard, once
//	browser.reserve {key, want} → {extensionId}  when an extension is free; it is reserved for a trial
//	browser.execute {key, command} → answer    sends browser.step {key, step} notifications
//	browser.extensions, browser.assistants     the directory of browsers
//	message.send {key, text}    → the message, when all its clients have answered
//	message.post {text}         → the message, at once
//	message.list, message.clients, message.watch {key}  the messenger; watch sends message.change {key, change} notifications
//
// A key is the client's name for a room or a watch, unique on its connection. When a connection
// ends, all its rooms are released.
package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/routing"
)

// The methods of the link.
const (
	methodReserve   = "reserve"
	methodEvaluate  = "evaluate"
	methodStatus    = "status"
	methodCancel    = "cancel"
	methodRelease   = "release"
	methodAgents    = "agents"
	methodWatch     = "watch"
	methodAgent     = "agent"
	methodKick      = "kick"
	methodDashboard = "dashboard"
)

// The codes of errors.
const (
	codeNoTool      = 1 // data: the tool
	codeAgain       = 2
	codeEnded       = 3 // the request was cancelled
	codeOther       = 4
	codePermanent   = 5 // a retry would fail in the same way
	codeTimeout     = 6
	codeStop        = 7 // data: whether it is orderly
	codeInvalid     = 8 // a message that cannot be sent
	codeUnavailable = 9 // messages are not accepted at the moment
)

// message holds the parameters of all methods. Unused parameters are absent.
type message struct {
	Key        string             `json:"key,omitempty"`
	Want       *remote.Want       `json:"want,omitempty"`
	Evaluation *remote.Evaluation `json:"evaluation,omitempty"`
	Status     *remote.Status     `json:"status,omitempty"`
	Agent      *remote.Agent      `json:"agent,omitempty"`
	ClientID   string             `json:"clientId,omitempty"`
	Reason     string             `json:"why,omitempty"`
	URL        string             `json:"url,omitempty"`
	Browser    *browserMessage    `json:"browser,omitempty"`
	Text       *routing.Message   `json:"text,omitempty"`
	Change     *routing.Change    `json:"change,omitempty"`
}

// encodeError converts an error to a reply of the link.
func encodeError(err error) *jsonrpc2.Error {
	var noTool *remote.NoToolError
	var invalid *routing.MessageError
	var unavailable *routing.UnavailableError
	err = executor.ProviderFault(err)
	e := &jsonrpc2.Error{Code: codeOther, Message: err.Error()}
	switch {
	case errors.As(err, &noTool):
		e.Code = codeNoTool
		e.SetError(noTool.Tool)
	case executor.AsRetry(err) != nil:
		e.Code, e.Message = codeAgain, executor.AsRetry(err).Reason
	case errors.Is(err, lease.ErrEnded):
		e.Code = codeEnded
	case executor.AsStop(err) != nil:
		e.Code = codeStop
		e.SetError(executor.AsStop(err).Orderly)
	case errors.Is(err, executor.ErrTimeout):
		timeout := executor.ErrTimeout.Error() // the other end adds it again
		e.Code, e.Message = codeTimeout, strings.TrimSuffix(strings.TrimPrefix(e.Message, timeout+": "), ": "+timeout)
	case executor.IsPermanent(err):
		e.Code = codePermanent
	case errors.As(err, &invalid):
		e.Code = codeInvalid
	case errors.As(err, &unavailable):
		e.Code = codeUnavailable
	}
	return e
}

// decodeError returns the error that [encodeError] encoded.
func decodeError(e *jsonrpc2.Error) error {
	switch e.Code {
	case codeNoTool:
		noTool := &remote.NoToolError{}
		if e.Data != nil && json.Unmarshal(*e.Data, &noTool.Tool) == nil {
			return noTool
		}
	case codeAgain:
		return &executor.RetryError{Reason: e.Message}
	case codeEnded:
		return lease.ErrEnded
	case codePermanent:
		return executor.Permanent(errors.New(e.Message))
	case codeTimeout:
		return fmt.Errorf("%w: %s", executor.ErrTimeout, e.Message)
	case codeStop:
		stop := &executor.StopError{Err: errors.New(e.Message)}
		if e.Data != nil && json.Unmarshal(*e.Data, &stop.Orderly) == nil {
			return stop
		}
	case codeUnavailable:
		return &routing.UnavailableError{Reason: e.Message}
	case codeInvalid:
		return &routing.MessageError{Reason: e.Message}
	}
	return errors.New(e.Message)
}

// writeTimeout is how long a process can leave a message unread before its connection is closed,
// so that a stopped process does not block others.
const writeTimeout = 30 * time.Second

// limitedConn closes a connection whose other end does not read.
type limitedConn struct{ net.Conn }

func (c limitedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Conn.Close() // the rest of the message is lost
	}
	return n, err
}
