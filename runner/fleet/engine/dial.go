package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// dialer opens the connections of a nats.Conn, which has one at a time. It records why
// connections failed, because nats.go does not report it for refused ones. It closes them when
// the process no longer needs them.
type dialer struct {
	home *home // of an embedded server, else nil
	ctx  context.Context
	end  context.CancelFunc

	mu     sync.Mutex // guards the fields below
	failed []error
	stop   func() bool // for the previous connection
}

func newDialer(h *home) *dialer {
	ctx, end := context.WithCancel(context.Background())
	return &dialer{home: h, ctx: ctx, end: end}
}

// Dial implements nats.CustomDialer. nats.go holds a lock while it waits.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.failed = append(d.failed[max(0, len(d.failed)-31):], err)
		return nil, err
	}
	if d.stop != nil {
		d.stop()
	}
	d.failed = nil
	d.stop = context.AfterFunc(d.ctx, func() { conn.Close() })
	return conn, nil
}

func (d *dialer) dial(network, address string) (net.Conn, error) {
	if d.home != nil {
		var err error
		if address, err = d.home.find(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, dialTime)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, network, address)
}

// failures returns the errors of connections since the last success.
func (d *dialer) failures() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.failed...)
}

// close closes the connection, and cancels one that is being opened.
func (d *dialer) close() { d.end() }

// unreachableError means that no server could be reached, and a retry can succeed.
type unreachableError struct {
	message string
	cause   error
}

func (e *unreachableError) Error() string { return e.message }
func (e *unreachableError) Unwrap() error { return e.cause }

func unreachable(err error) bool {
	var e *unreachableError
	return errors.As(err, &e)
}

// explain describes, in terms of the fleet address, why connecting failed.
func (c *Conn) explain(err error) error {
	failures := cmp.Or(c.dialer.failures(), err)
	if c.home != nil {
		return c.home.explain(failures)
	}
	if hint := hint(err); hint != "" {
		return fmt.Errorf("fleet %s: %s", c.address, hint)
	}
	where := "cannot reach the server"
	if len(c.address.Servers) > 1 {
		where = "cannot reach any server"
	}
	why := strings.ReplaceAll(failures.Error(), "\n", "; ")
	if errors.Is(failures, nats.ErrTimeout) {
		why = "no answer of a NATS server within " + dialTime.String()
	}
	return &unreachableError{fmt.Sprintf("fleet %s: %s: %s", c.address, where, why), failures}
}
