package wire

import (
	"cmp"
	"context"
	"time"
)

// Options sets the limits of a Stream. The zero value serves a trusted client
// on stdio.
type Options struct {
	// MaxLine is the longest message read, in bytes; a longer one is skipped
	// and answered with -32600. 0 means DefaultMaxLine. Stream.SetMaxLine
	// changes it later.
	MaxLine int

	// MaxInFlight is how many requests may be without their reply at once;
	// more are answered with -32005. 0 means 256.
	MaxInFlight int

	// MaxInFlightBytes is how many bytes of their messages the requests in
	// flight may hold together; one that exceeds it, and is not the only one,
	// is answered with -32005. 0 means 32 MiB.
	MaxInFlightBytes int

	// MaxBatch is the most members a batch may have; a longer one is answered
	// with one -32005 and none of it is carried out. 0 means 100.
	MaxBatch int

	// MaxQueued is how many bytes of output may wait for a client that does
	// not read before its further requests are answered with -32005.
	// 0 means 8 MiB.
	MaxQueued int

	// NotifyQueued is how many bytes of output may wait before Notify blocks
	// its caller. It bounds how long a reply can stand behind notifications,
	// so it is small. 0 means 64 KiB.
	NotifyQueued int

	// WriteTimeout is how long the writing of one message may take before the
	// output counts as broken, where the writer has a SetWriteDeadline. 0
	// means no limit: right for stdio, whose client may be stopped in a
	// debugger, and wrong for TCP.
	WriteTimeout time.Duration

	// DrainTimeout is how long replies in flight are waited for once the
	// input has ended. 0 means one minute.
	DrainTimeout time.Duration

	// CloseTimeout is how long Close waits for queued output to get out.
	// 0 means one second.
	CloseTimeout time.Duration

	// RefuseForeign ends the stream with ErrForeign, after one -32700, when the
	// input begins with another protocol: its first byte begins no JSON text and
	// no header, or its first line is neither. Set it on sockets. Otherwise the
	// stream would continue with the next line, which a web page controls: the
	// body of a POST, or a TLS session ticket that a browser sends back.
	RefuseForeign bool

	// NullParams lists methods for which params of null mean absent params. JSON-RPC
	// knows no such params, but language clients send them. Where the stream speaks
	// Content-Length, as those clients do, null means absent for all methods.
	NullParams []string

	// OnEOF, if not nil, is called once, when the input has ended and the
	// replies in flight are out (or DrainTimeout has passed). The end of the
	// input is reported to the connection only after it has returned and all
	// queued output is written; so it is where to wait for the client's runs.
	// Its ctx ends when the output breaks or the stream is closed.
	OnEOF func(ctx context.Context)
}

const (
	// DefaultMaxLine is the longest message of a client that is trusted: 16 MiB.
	DefaultMaxLine = 16 << 20
	// MaxLineBeforeAuth is the longest message to allow a client that has not
	// shown its token yet: 64 KiB.
	MaxLineBeforeAuth = 64 << 10
	// MaxDepth is how deep a message may nest: as deep as encoding/json reads.
	MaxDepth = 10_000

	// maxOwnQueued is how many bytes of the stream's own error replies may
	// wait before reading pauses: the only time the reader waits for the
	// writer without a limit.
	maxOwnQueued = 1 << 20
	// stallTime is how long a request may wait for room in the output before
	// it is refused; once, until the client reads something again.
	stallTime = 250 * time.Millisecond
)

// withDefaults replaces each zero limit by what it stands for.
func (o Options) withDefaults() Options {
	o.MaxLine = cmp.Or(o.MaxLine, DefaultMaxLine)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 256)
	o.MaxInFlightBytes = cmp.Or(o.MaxInFlightBytes, 32<<20)
	o.MaxBatch = cmp.Or(o.MaxBatch, 100)
	o.MaxQueued = cmp.Or(o.MaxQueued, 8<<20)
	o.NotifyQueued = cmp.Or(o.NotifyQueued, 64<<10)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, time.Minute)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, time.Second)
	return o
}
