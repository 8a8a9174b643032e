package host

import (
	"errors"
	"io"
	"os"
	"time"
)

// An Input is the input of a client: a network connection, or what [Pollable] returns.
type Input interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Pollable returns the contents of a file as an Input, which owns the file. It returns the file
// itself if it cannot wait for its contents in another way than in a system call.
//
// A thread that waits in a system call keeps its processor, and the goroutines that wait for that,
// until the runtime notices. This takes up to 10 ms, for instance until a request is handled while
// the reader already waits for the next one.
func Pollable(f *os.File) io.ReadCloser {
	if in := pollable(f); in != nil {
		return in
	}
	return f
}

const (
	// peekInterval is how often a reader of [Attentive] looks for input.
	peekInterval = time.Millisecond
	// attention is how long it does so after input.
	attention = 100 * time.Millisecond
)

// Attentive returns a reader of in that notices input within about a millisecond while busy
// returns true, and for a short time after other input.
//
// The Go runtime looks at the network when a processor has no goroutine to run, otherwise only every
// 10 ms. A timer interrupts busy processors, though, and every Read first tries to read: so while
// the process is busy, each Read has a deadline of a millisecond and is repeated. This costs 0.3 %
// of a processor. A reader that already waits when the process becomes busy notices that with the
// next input.
func Attentive(in Input, busy func() bool) io.ReadCloser {
	return &attentive{Input: in, busy: busy}
}

type attentive struct {
	Input
	busy func() bool
	last time.Time // of the last input
}

func (a *attentive) Read(b []byte) (int, error) {
	for {
		var deadline time.Time
		if now := time.Now(); now.Sub(a.last) < attention || a.busy() {
			deadline = now.Add(peekInterval)
		}
		if err := a.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		n, err := a.Input.Read(b)
		if n > 0 {
			a.last = time.Now()
		}
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}
