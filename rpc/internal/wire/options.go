package wire

import (
	"cmp"
	"context"
	"time"
)

// Options sets the limits of a Stream. The zero value suits a trusted client on stdio.
type Options struct {
	// MaxLine limits the bytes of a message. A longer message is skipped and gets the error
	// -32600. 0 means DefaultMaxLine. Stream.SetMaxLine changes it later.
	MaxLine int

	// MaxInFlight limits the requests without a reply. More requests get the error -32005. 0
	// means 256.
	MaxInFlight int

	// MaxInFlightBytes limits the total bytes of the messages of requests in flight. A request
	// that exceeds it, and is not the only one, gets the error -32005. 0 means 32 MiB.
	MaxInFlightBytes int

	// MaxBatch limits the members of a batch. A longer batch gets one error -32005 and none of
	// it is executed. 0 means 100.
	MaxBatch int

	// MaxQueued limits the bytes of unread output. While they are exceeded, further requests of
	// the client get the error -32005. 0 means 8 MiB.
	MaxQueued int

	// NotifyQueued limits the bytes of waiting output, beyond which Notify blocks its caller.
	// Notifications before a reply delay it, so this limit is small. 0 means 64 KiB.
	NotifyQueued int

	// WriteTimeout limits the time for writing one message, after which the output counts as
	// broken. It applies if the writer has a SetWriteDeadline. 0 means no limit. That is right
	// for stdio, whose client may be stopped in a debugger, and wrong for TCP.
	WriteTimeout time.Duration

	// DrainTimeout limits the wait for replies in flight after the input has ended. 0 means one
	// minute.
	DrainTimeout time.Duration

	// CloseTimeout limits the time for Close to write queued output. 0 means one second.
	CloseTimeout time.Duration

	// RefuseForeign ends the stream with ErrForeign, after one error -32700, if the input starts
	// with another protocol: neither a JSON text nor a header can start with its first byte, or
	// its first line is neither. Set it on sockets. Otherwise the stream would continue with the
	// next line, which a web page controls: the body of a POST, or a TLS session ticket that a
	// browser sends back.
	RefuseForeign bool

	// NullParams lists methods for which params of null mean absent params. JSON-RPC does not
	// allow such params, but language clients send them. If the stream uses Content-Length, as
	// those clients do, null means absent for all methods.
	NullParams []string

	// OnEOF, if not nil, is called once, when the input has ended and the replies in flight are
	// written (or DrainTimeout has passed). The connection learns of the end only after OnEOF
	// has returned and all queued output is written. So OnEOF is the place to wait for the
	// client's runs. Its ctx ends when the output breaks or the stream is closed.
	OnEOF func(ctx context.Context)
}

const (
	// DefaultMaxLine is the maximum size of a trusted client's message: 16 MiB.
	DefaultMaxLine = 16 << 20
	// MaxLineBeforeAuth is the recommended maximum size of a message from a client that has not
	// sent its token yet: 64 KiB.
	MaxLineBeforeAuth = 64 << 10
	// MaxDepth limits the nesting depth of a message, like encoding/json.
	MaxDepth = 10_000

	// maxOwnQueued limits the unwritten bytes of the stream's own error replies. Beyond it, the
	// reader waits for the writer. This is the only time when it waits without a time limit.
	maxOwnQueued = 1 << 20
	// stallTime limits the time that a request waits for room in the output before it is
	// refused. It waits only once until the client reads again.
	stallTime = 250 * time.Millisecond
)

// withDefaults replaces each zero limit by its default.
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
