package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/pause"
)

const (
	// A try gets no answer if its server stops. Therefore the first is short, and later ones are
	// longer for slow servers.
	firstTry = 2 * time.Second
	lastTry  = 10 * time.Second
	// The pauses between tries double.
	firstTryPause = 50 * time.Millisecond
	lastTryPause  = 2 * time.Second
)

// Try calls do until it returns nil or a permanent error, because a cluster does not answer for
// some seconds after one of its servers stops. do can be called again after a call that
// succeeded on the server. When ctx ends, Try returns the last error.
func Try(ctx context.Context, do func(context.Context) error) error {
	limit, wait := firstTry, firstTryPause
	for {
		once, cancel := context.WithTimeout(ctx, limit)
		err := do(once)
		late := once.Err() != nil
		cancel()
		if err == nil || ctx.Err() != nil || !(late || Passes(err)) {
			return err
		}
		if pause.About(ctx, wait) != nil {
			return err
		}
		limit, wait = min(2*limit, lastTry), min(2*wait, lastTryPause)
	}
}

// noPeers is the error code of a cluster without enough servers for the replicas of a stream. The
// description names the reasons, "peer offline" among them (server 2.15).
const noPeers = 10005

// Passes reports whether an error means that servers temporarily cannot answer.
func Passes(err error) bool {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		switch {
		case api.Code == http.StatusServiceUnavailable, api.Code == http.StatusTooManyRequests:
			return !errors.Is(err, jetstream.ErrJetStreamNotEnabled)
		case api.ErrorCode == noPeers:
			return strings.Contains(api.Description, "peer offline")
		}
	}
	return slices.ContainsFunc([]error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse,
		context.DeadlineExceeded,
	}, func(passing error) bool { return errors.Is(err, passing) })
}
