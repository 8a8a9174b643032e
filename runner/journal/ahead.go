package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
)

// Most of the time of reading is for the digests of lines, and a digest needs only its own line. The
// lines of a long journal are therefore verified on all processors, in chunks. Only what depends on
// the lines before, such as the link, is left to the reader. The first chunk needs no workers, so
// short journals have none.
//
//	         ┌── worker: read a chunk, verify its lines ──┐
//	file ──► ├── worker                                   ├── order ──► Reader.Next
//	         └── worker  ◄──────── free chunks ───────────┘

// chunkSize is the size of the parts of the file that are read at once.
const chunkSize = 128 << 10

// A chunk consists of whole lines, except a part of a line that is longer than a chunk, and the last
// chunk, which can end with an incomplete line.
type chunk struct {
	text      []byte
	continues bool // text starts amid a line
	err       error
	lines     []chunkLine
	ready     chan struct{} // receives a value when the lines are verified
}

// chunkLine is a line of a chunk with its newline, or the incomplete last one.
type chunkLine struct {
	raw   []byte
	whole bool  // false also if the start of the line is in the chunk before
	proof proof // of a whole line
}

// ahead reads the lines of a journal before its reader needs them. It owns the workers, which end
// with the last chunk or with close.
type ahead struct {
	size     int // of chunks
	verifier *verifier
	now      *chunk // whose lines are returned
	next     int    // index of the next of them

	workers     sync.WaitGroup
	free, order chan *chunk // nil before start; free is nil after close

	mu   sync.Mutex // guards the fields below
	file io.Reader
	rest []byte // the start of the next chunk, which was already read
	amid bool   // the next chunk starts amid a line
	err  error  // nothing more can be read
}

func newAhead(file io.Reader, v *verifier, size int) *ahead {
	a := &ahead{file: file, size: size, verifier: v, now: new(chunk)}
	a.read(a.now)
	a.now.verify(v)
	return a
}

// line returns the next line like [bufio.Reader.ReadSlice], and its proof unless its start was
// returned before. Both are valid until the next call.
func (a *ahead) line() (raw []byte, p *proof, err error) {
	for a.next == len(a.now.lines) {
		if a.now.err != nil {
			return nil, nil, a.now.err
		}
		a.turn()
	}
	l := &a.now.lines[a.next]
	a.next++
	switch {
	case l.whole:
		return l.raw, &l.proof, nil
	case bytes.HasSuffix(l.raw, []byte("\n")):
		return l.raw, nil, nil
	case a.now.err == nil:
		return l.raw, nil, bufio.ErrBufferFull
	}
	return l.raw, nil, a.now.err
}

// turn replaces the present chunk by the one after it.
func (a *ahead) turn() {
	if a.order == nil {
		a.start()
	}
	a.free <- a.now
	a.now, a.next = <-a.order, 0
	<-a.now.ready
	if a.now.err != nil {
		a.close()
	}
}

func (a *ahead) start() {
	workers := runtime.GOMAXPROCS(0)
	chunks := workers + 2 // so that workers seldom wait for the reader
	free := make(chan *chunk, chunks)
	a.free, a.order = free, make(chan *chunk, chunks)
	a.now.ready = make(chan struct{}, 1)
	for range chunks - 1 { // and the present one
		free <- &chunk{ready: make(chan struct{}, 1)}
	}
	for range workers {
		v := a.verifier.clone()
		a.workers.Go(func() {
			for c := range free {
				if !a.queue(c) {
					return
				}
				c.verify(v)
				c.ready <- struct{}{}
			}
		})
	}
}

// close ends the workers. The last chunk can still be used.
func (a *ahead) close() {
	if a.free == nil {
		return
	}
	close(a.free)
	a.free = nil
	a.workers.Wait()
}

// queue reads a chunk and queues it for the reader. It returns false after the last chunk.
func (a *ahead) queue(c *chunk) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return false
	}
	a.read(c)
	a.order <- c // never blocks
	return true
}

// read reads a chunk. If another goroutine can use a, the caller holds its lock.
func (a *ahead) read(c *chunk) {
	if cap(c.text) < a.size {
		c.text = make([]byte, a.size)
	}
	c.text = c.text[:a.size]
	n := copy(c.text, a.rest)
	more, err := io.ReadFull(a.file, c.text[n:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	c.text = c.text[:n+more]
	whole := bytes.LastIndexByte(c.text, '\n') + 1
	c.continues, c.err = a.amid, err
	a.amid, a.err = whole == 0, err
	a.rest = a.rest[:0]
	if err == nil && whole > 0 {
		a.rest = append(a.rest, c.text[whole:]...)
		c.text = c.text[:whole]
	}
}

// verify splits a chunk into lines and verifies them.
func (c *chunk) verify(v *verifier) {
	c.lines = c.lines[:0]
	for rest := c.text; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		l := chunkLine{raw: rest, whole: end > 0 && (len(c.lines) > 0 || !c.continues)}
		if end > 0 {
			l.raw = rest[:end:end]
		}
		if l.whole {
			l.proof = v.prove(l.raw)
		}
		c.lines = append(c.lines, l)
		rest = rest[len(l.raw):]
	}
}
