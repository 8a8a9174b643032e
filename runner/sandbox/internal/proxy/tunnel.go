package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// tunnelChunk is the size in bytes of the buffers of tunnels.
const tunnelChunk = 32 << 10

// tunnelBuffers are buffers of that size.
var tunnelBuffers = sync.Pool{New: func() any { return new([tunnelChunk]byte) }}

// A halfCloser is a connection that can end its outgoing direction.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// tunnel copies data between two connections until both directions have ended, one fails, or no data
// arrives for [tunnelIdleTime]. It closes both. early are the bytes that the client sent already.
func tunnel(client halfCloser, early io.Reader, upstream halfCloser) {
	closeBoth := func() {
		client.Close()
		upstream.Close()
	}
	defer closeBoth()
	idle := time.AfterFunc(tunnelIdleTime, closeBoth)
	defer idle.Stop()
	alive := func() { idle.Reset(tunnelIdleTime) }

	var up sync.WaitGroup
	up.Go(func() {
		if !relay(upstream, early, alive) {
			closeBoth()
		}
	})
	if !relay(client, upstream, alive) {
		closeBoth()
	}
	up.Wait()
}

// relay copies src to dst until src ends, and then ends the outgoing direction of dst. It returns
// false if a connection failed.
func relay(dst halfCloser, src io.Reader, alive func()) bool {
	buf := tunnelBuffers.Get().(*[tunnelChunk]byte)
	defer tunnelBuffers.Put(buf)
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			alive()
			if _, err := dst.Write(buf[:n]); err != nil {
				return false
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return dst.CloseWrite() == nil
		case err != nil:
			return false
		}
	}
}
