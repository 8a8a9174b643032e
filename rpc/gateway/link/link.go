// Package link connects the waza processes of one user to the server of their state
// directory. The server calls [Listen] and then [Server.Serve]; all others call
// [NewClient], which implements [remote.Hub].
//
// Both ends speak JSON-RPC 2.0, one message a line, over a unix socket that only this
// user can open:
//
//	reserve  {key, want}        → {clientId}   when an agent has room
//	evaluate {key, evaluation}  → {answer}     in the room of that key
//	status   {key, status}      ←              notification: how far the agent is
//	cancel   {key}              notification: end the request of that key
//	release  {key}              notification: give the room back
//	agents, watch {key}, kick   the directory; watch sends agent {key, agent} notifications
//	dashboard                   → {url}        a link that opens the dashboard, once
//
// A key is the client's name for a room or a watch, unique on its connection. A
// connection that ends gives back all its rooms.
package link

import (
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/runner/executor"
	"waza/runner/executor/remote"
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
	codeNoTool = 1 // data: the tool
	codeAgain  = 2
	codeEnded  = 3 // the request was cancelled
	codeOther  = 4
)

// message has the parameters of all methods; what a method has no use for is absent.
type message struct {
	Key        string             `json:"key,omitempty"`
	Want       *remote.Want       `json:"want,omitempty"`
	Evaluation *remote.Evaluation `json:"evaluation,omitempty"`
	Status     *remote.Status     `json:"status,omitempty"`
	Agent      *remote.Agent      `json:"agent,omitempty"`
	ClientID   string             `json:"clientId,omitempty"`
	Why        string             `json:"why,omitempty"`
	URL        string             `json:"url,omitempty"`
}

// encodeError gives the error that crosses the link.
func encodeError(err error) *jsonrpc2.Error {
	var noTool *remote.NoToolError
	e := &jsonrpc2.Error{Code: codeOther, Message: err.Error()}
	switch {
	case errors.As(err, &noTool):
		e.Code = codeNoTool
		e.SetError(noTool.Tool)
	case executor.AsAgain(err) != nil:
		e.Code, e.Message = codeAgain, executor.AsAgain(err).Why
	case errors.Is(err, errEnded):
		e.Code = codeEnded
	}
	return e
}

// decodeError gives the error that [encodeError] encoded.
func decodeError(e *jsonrpc2.Error) error {
	switch e.Code {
	case codeNoTool:
		noTool := &remote.NoToolError{}
		if e.Data != nil && json.Unmarshal(*e.Data, &noTool.Tool) == nil {
			return noTool
		}
	case codeAgain:
		return &executor.AgainError{Why: e.Message}
	case codeEnded:
		return errEnded
	}
	return errors.New(e.Message)
}

// errEnded is the cause of requests that were cancelled, or whose connection ended.
var errEnded = errors.New("the request was cancelled")

// writeTimeout is how long a process may leave a message unread before its connection
// is closed, so that one which is halted holds up nobody.
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
