// Package engine connects processes to the NATS servers of a fleet address. For the address
// "embedded" it runs the server inside waza processes. Call [Parse] and [Connect].
package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleetaddr"
	"waza/runner/pause"
)

// Address is a fleet address.
type Address = fleetaddr.Address

// Parse parses a fleet address. Relative files are relative to the working directory. It checks
// that its files exist and that others cannot read its secrets. Its errors contain no password
// and no token.
func Parse(given string) (Address, error) {
	a, err := fleetaddr.Parse(given)
	if err != nil {
		return a, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return a, fmt.Errorf("find the working directory: %w", err)
	}
	a = a.In(dir)
	return a, a.Check()
}

// Options configure [Connect]. The zero value is valid for an address with servers.
type Options struct {
	// Name identifies the process to operators of the server, such as "waza worker host-7".
	// Empty means "waza".
	Name string
	// Log receives the events of the connection; nil discards them.
	Log *slog.Logger
	// State is the state directory, in which an embedded server keeps its store. It must be
	// absolute. Addresses with servers do not need it.
	State string
	// Retry means that the first connection is retried until ctx ends while no server can be
	// reached. Otherwise it is tried once. A rejected login or a wrong certificate is an error
	// in both cases.
	Retry bool
	// Changed, if not nil, is called with the reason when the connection is lost, and with nil
	// when it is restored. The calls do not overlap, and must not wait for Close.
	Changed func(lost error)
}

const (
	dialTime = 5 * time.Second // for one server: to connect, log in and receive its limits
	// a connection without an answer for about twice this time is lost
	pingTime = 10 * time.Second
	// flushTime is how long Close waits until the server has received everything.
	flushTime = time.Second
	// Pauses between rounds of tries start at about firstPause and double up to lastPause. An
	// embedded server is tried more often, because only processes of this user compete for it,
	// and the first to try can take over.
	firstPause, lastPause         = 100 * time.Millisecond, 5 * time.Second
	firstPauseHere, lastPauseHere = 10 * time.Millisecond, 500 * time.Millisecond
	// hostTime is how long a process waits for a different one to start the embedded server,
	// which reads its store first.
	hostTime = 30 * time.Second
)

// Conn is a connection to the servers of a fleet. It reconnects, with growing pauses, until
// Close. It is safe for concurrent use.
//
// Its goroutines belong to nats.go and end before Close returns.
type Conn struct {
	address Address
	options Options
	nats    *nats.Conn
	js      jetstream.JetStream
	home    *home // of an embedded server, else nil
	dialer  *dialer
	closing atomic.Bool
	refused atomic.Pointer[string] // refusal logged last, since the connection was lost
	closed  chan struct{}          // closed when nats.go has called all handlers
	once    sync.Once
}

// Connect connects to a server of an address, or to the embedded server of this user and state
// directory. It starts the embedded server unless a different process runs it. The caller must
// call Close.
//
// The error names each server and the reason. If ctx has ended, the error is its cause.
func Connect(ctx context.Context, address Address, options Options) (*Conn, error) {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	options.Name = cmp.Or(options.Name, "waza")
	c := &Conn{address: address, options: options, closed: make(chan struct{})}
	if address.Embedded {
		home, err := openHome(options.State, options.Log)
		if err != nil {
			return nil, err
		}
		c.home = home
	}
	err := c.connect(ctx)
	if err == nil {
		if err = c.checkVersion(); err != nil {
			c.nats.Close()
			<-c.closed
		}
	}
	if err != nil {
		c.home.close()
		return nil, err
	}
	return c, nil
}

// connect tries once, or until a server can be reached.
func (c *Conn) connect(ctx context.Context) error {
	started := time.Now()
	for n := 1; ; n++ {
		err := c.try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		starting := c.home != nil && unreachable(err) && time.Since(started) < hostTime
		if !starting && !(c.options.Retry && unreachable(err)) {
			return err
		}
		wait := c.pause(n)
		if !starting {
			c.options.Log.Warn("cannot reach the fleet", "error", err.Error(), "next_try_s", wait.Seconds())
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// try makes one attempt with each server.
func (c *Conn) try(ctx context.Context) error {
	options, err := c.loginOptions()
	if err != nil {
		return err
	}
	c.dialer = newDialer(c.home)
	options = append(options, c.eventOptions()...)
	options = append(options,
		nats.Name(c.options.Name),
		nats.SetCustomDialer(c.dialer),
		nats.Timeout(dialTime),
		nats.PingInterval(pingTime),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(c.pause),
		nats.CustomInboxPrefix(InboxPrefix(c.address.Team)),
	)
	stop := context.AfterFunc(ctx, c.dialer.close)
	conn, err := nats.Connect(c.servers(), options...)
	if err == nil && !stop() {
		conn.Close()
		return context.Cause(ctx)
	}
	if err != nil {
		stop()
		c.dialer.close()
		return c.explain(err)
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(publishTime))
	if err != nil {
		conn.Close()
		return err
	}
	c.nats, c.js = conn, js
	return nil
}

// servers returns the addresses for nats.go. For an embedded server, the dialer finds the real
// address.
func (c *Conn) servers() string {
	if c.home != nil {
		return "nats://127.0.0.1:4222"
	}
	return strings.Join(c.address.Servers, ",")
}

// pause returns how long to wait after the n-th round of tries.
func (c *Conn) pause(n int) time.Duration {
	first, last := firstPause, lastPause
	if c.home != nil {
		first, last = firstPauseHere, lastPauseHere
	}
	d := min(last, first<<min(n-1, 10))
	return d/2 + rand.N(d/2)
}

// InboxPrefix returns the prefix of the subjects of answers for processes of a team. With
// different users, teams can be kept from reading each other's answers.
func InboxPrefix(team string) string { return "_INBOX.waza." + team }

// NATS returns the connection for messages that are not stored.
func (c *Conn) NATS() *nats.Conn { return c.nats }

// JetStream returns the connection for messages that are stored.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// Address returns the address that the connection was made for.
func (c *Conn) Address() Address { return c.address }

// MaxPayload returns the maximum size of a message in bytes, including headers.
func (c *Conn) MaxPayload() int64 { return c.nats.MaxPayload() }

// Connected reports whether the process is connected to a server now.
func (c *Conn) Connected() bool { return c.nats.IsConnected() }

// Hosting reports whether this process runs the embedded server now.
func (c *Conn) Hosting() bool { return c.home.hosting() }

// Close sends pending messages, for at most a second, and closes the connection. Closing the
// last connection of a process also stops its embedded server; a different process that uses it
// takes over. Close can be called more than once.
func (c *Conn) Close() {
	c.once.Do(func() {
		c.closing.Store(true)
		if c.nats.IsConnected() {
			_ = c.nats.FlushTimeout(flushTime)
		}
		c.dialer.close()
		c.nats.Close()
		<-c.closed
		c.home.close()
	})
}

// publishTime is how long a server can take to acknowledge a message before the message is sent
// again. A server that stops at that moment never acknowledges it.
const publishTime = 10 * time.Second

// oldest is the oldest release of nats-server with all required features, such as metadata of
// consumers.
var oldest = [2]int{2, 10}

func (c *Conn) checkVersion() error {
	version := c.nats.ConnectedServerVersion()
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil || a > oldest[0] || a == oldest[0] && b >= oldest[1] {
		return nil
	}
	return fmt.Errorf("fleet %s: nats-server %s is too old; waza needs %d.%d or later", c.address, version, oldest[0], oldest[1])
}
