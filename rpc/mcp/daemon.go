package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/eval/text"
)

// daemon is a connection to a [Daemon], as its only client. Its
// methods are safe for concurrent use.
type daemon struct {
	conn   *jsonrpc2.Conn
	lastID atomic.Uint64
	served chan struct{} // closed when the server has ended the connection
}

// dial connects to a server as the client that owns its runs. Relative paths are resolved
// against dir.
func dial(s Daemon, dir string) (*daemon, error) {
	ours, theirs := net.Pipe()
	d := &daemon{served: make(chan struct{})}
	go func() {
		defer close(d.served)
		_ = s.ServeStdio(context.Background(), theirs, theirs) // close and Shutdown end it
	}()
	// Notifications are dropped, because followers read the events of a run.
	d.conn = jsonrpc2.NewConn(context.Background(), jsonrpc2.NewPlainObjectStream(ours), ignore{})
	err := d.call(context.Background(), "initialize", map[string]any{
		"clientInfo": map[string]any{"name": "waza mcp"}, "workspaceFolders": []string{dir},
	}, nil)
	if err != nil {
		d.close(context.Background())
		return nil, err
	}
	return d, nil
}

type ignore struct{}

func (ignore) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {}

// call calls a method and decodes its result into result, unless that is nil. When ctx ends,
// call cancels the request and returns the cause.
func (d *daemon) call(ctx context.Context, method string, params, result any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	id := jsonrpc2.ID{Num: d.lastID.Add(1)}
	waiter, err := d.conn.DispatchCall(context.WithoutCancel(ctx), method, params, jsonrpc2.PickID(id))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	err = waiter.Wait(ctx, result)
	if ctx.Err() != nil {
		_ = d.conn.Notify(context.WithoutCancel(ctx), "$/cancelRequest", map[string]any{"id": id})
		return context.Cause(ctx)
	}
	if fault, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return &methodError{fault}
	}
	return err
}

// close cancels the runs of the client and ends the connection. When ctx ends, it no longer
// waits for the runs.
func (d *daemon) close(ctx context.Context) {
	if d.call(ctx, "shutdown", nil, nil) == nil {
		_ = d.call(ctx, "exit", nil, nil)
	}
	select {
	case <-d.served:
	case <-ctx.Done():
	}
	d.conn.Close()
}

// stopTime limits the time to cancel a run.
const stopTime = 5 * time.Second

// methodError is the error of a method in the form for models: the message and the details that
// help to correct the call.
type methodError struct{ fault *jsonrpc2.Error }

// maxFault limits the bytes of an error text, maxKnown the names in it.
const (
	maxFault = 4 << 10
	maxKnown = 20
)

func (e *methodError) Error() string {
	var data struct {
		Reason, Path, Suggestion string
		TaskID                   string `json:"taskId"`
		RunID                    string `json:"runId"`
		Known, Errors, Suites    []string
	}
	if e.fault.Data != nil {
		_ = json.Unmarshal(*e.fault.Data, &data) // if data has another form, the message is enough
	}
	b := strings.Builder{}
	b.WriteString(e.fault.Message)
	for _, detail := range []string{data.TaskID, data.RunID, data.Path, data.Reason} {
		if detail != "" && !strings.Contains(b.String(), detail) && (detail == data.Reason || !strings.Contains(data.Reason, detail)) {
			b.WriteString(": " + detail)
		}
	}
	if data.Suggestion != "" {
		fmt.Fprintf(&b, "\ndid you mean %q?", data.Suggestion)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"", data.Errors}, {"known: ", data.Known}, {"suites: ", data.Suites}} {
		if len(list.items) == 0 || list.name != "" && (data.Suggestion != "" || strings.Contains(b.String(), list.items[0])) {
			continue
		}
		more := len(list.items) - maxKnown
		items := slices.Clone(list.items[:min(len(list.items), maxKnown)])
		if more > 0 {
			items = append(items, fmt.Sprintf("… and %d more", more))
		}
		b.WriteString("\n" + list.name + strings.Join(items, map[bool]string{true: "\n", false: ", "}[list.name == ""]))
	}
	return text.Clip(b.String(), maxFault)
}
