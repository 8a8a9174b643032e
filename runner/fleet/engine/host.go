package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// Limits of the embedded server.
const (
	// MaxPayload is the maximum size of a message to the embedded server, in bytes.
	MaxPayload = 8 << 20
	// MaxStore is the maximum size of all streams of the embedded server, in bytes.
	MaxStore = 32 << 30
	// mostMemory is the maximum size of streams in memory, in bytes.
	mostMemory = 256 << 20
	// acceptTime is the time limit for the server to accept clients after it has read its store.
	acceptTime = 10 * time.Second
)

// host is an embedded server that runs in this process.
type host struct {
	place  place
	server embedded
	log    *serverLog
}

// embedded is the part of [server.Server] that a host uses. With the type itself as a field, the Go
// compiler compiles generic types of nats-server again for each of the 28 packages whose types lead
// to a host.
type embedded interface {
	JetStreamEnabled() bool
	Shutdown()
	WaitForShutdown()
}

// stores reports whether the server can store messages. After a failed write, nats-server stores
// no more messages in that stream, or in any, until it starts again.
func (h *host) stores() bool { return h.server.JetStreamEnabled() && !h.log.full.Load() }

// startHost starts a server with its store in dir, which accepts clients with the token. It
// returns when the server accepts clients.
//
// Messages that JetStream has acknowledged are in files, and survive if this process is killed.
// They are on the disk after at most two minutes, the sync interval of nats-server. A machine
// that loses power can lose that much; a resumed run publishes its orders again.
//
// nats-server handles no signals here and does not end the process. Its goroutines end with it,
// except one that updates the access time of caches, which ends with the last server of the
// process.
func startHost(dir, token string, log *slog.Logger) (*host, error) {
	s, err := server.NewServer(&server.Options{
		ServerName:         fmt.Sprintf("waza-embedded-%d", os.Getpid()),
		Host:               "127.0.0.1",
		Port:               server.RANDOM_PORT,
		Authorization:      token,
		MaxPayload:         MaxPayload,
		JetStream:          true,
		JetStreamMaxMemory: mostMemory,
		JetStreamMaxStore:  MaxStore,
		StoreDir:           dir,
		NoSigs:             true,
		NoLog:              true,
	})
	if err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	logger := &serverLog{log: log}
	s.SetLoggerV2(logger, false, false, false)
	s.Start()
	h := &host{server: s, log: logger}
	if why := logger.reason(); why != "" {
		h.end()
		return nil, fmt.Errorf("start the embedded server: %s", why)
	}
	if !s.ReadyForConnections(acceptTime) {
		h.end()
		return nil, fmt.Errorf("start the embedded server: it did not accept clients within %s", acceptTime)
	}
	logger.started.Store(true)
	h.place = place{Address: s.Addr().String(), Token: token, PID: os.Getpid()}
	return h, nil
}

// end stops the server and waits for it.
func (h *host) end() {
	h.server.Shutdown()
	h.server.WaitForShutdown()
}

// serverLog passes warnings and errors of nats-server to slog. Warnings while it reads its store
// only mean that the previous process was killed, so they have the level info.
type serverLog struct {
	log     *slog.Logger
	started atomic.Bool
	full    atomic.Bool // a write failed because the disk is full

	mu    sync.Mutex // guards fatal
	fatal string
}

func (l *serverLog) write(level slog.Level, format string, v []any) {
	l.watch(v)
	if ctx := context.Background(); l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "embedded server", "message", strings.TrimSpace(fmt.Sprintf(format, v...)))
	}
}

// watch looks for the error of a full disk among the arguments of a log message.
func (l *serverLog) watch(v []any) {
	if slices.ContainsFunc(v, isFull) {
		l.full.Store(true)
	}
}

// isFull reports whether an argument of a log message is the error of a full disk.
func isFull(v any) bool {
	err, ok := v.(error)
	return ok && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT))
}

// Noticef implements server.Logger. It drops the server's banner and settings, because waza logs
// the start and the address itself.
func (l *serverLog) Noticef(_ string, v ...any) { l.watch(v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) {
	level := slog.LevelInfo
	if l.started.Load() {
		level = slog.LevelWarn
	}
	l.write(level, format, v)
}

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.write(slog.LevelWarn, format, v) }

// Debugf implements server.Logger. It drops a line per connection, ping and request, which would
// hide waza's own lines.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (l *serverLog) Tracef(string, ...any) {}

// Fatalf implements server.Logger. nats-server's own logger would end the process.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		l.fatal = fmt.Sprintf(format, v...)
	}
}

// reason returns why the server could not start, or "" if it did.
func (l *serverLog) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
