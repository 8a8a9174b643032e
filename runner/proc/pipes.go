package proc

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// pipes are the ends of a program's standard streams and the goroutines that copy them.
type pipes struct {
	child   []*os.File // closed once the program has its own copies
	input   *os.File   // nil when there is nothing to write
	output  []*os.File
	copying atomic.Int64  // number of goroutines that read output, and 1 until all are started
	copied  chan struct{} // closed when copying is 0
}

// OutputPipe returns a pipe to which a program writes what this process reads. The program gets w
// as one of its ExtraFiles; the caller closes w when the program has started, and r.
func OutputPipe() (r, w *os.File, err error) { return newPipe(true, false) }

// connect attaches files to cmd, so that waiting for the process does not wait for descendants
// that hold its output.
func connect(cmd *exec.Cmd, c Command) (*pipes, error) {
	ps := &pipes{copied: make(chan struct{})}
	ps.copying.Store(1)
	err := ps.attach(cmd, c)
	ps.endCopy()
	if err != nil {
		ps.closeAll()
		return nil, err
	}
	return ps, nil
}

func (ps *pipes) attach(cmd *exec.Cmd, c Command) (err error) {
	if c.Stdin != nil {
		if err := ps.feed(cmd, c.Stdin); err != nil {
			return err
		}
	}
	if c.Stdout != nil {
		if cmd.Stdout, err = ps.drainTo(c.Stdout); err != nil {
			return err
		}
	}
	switch {
	case c.Stderr == nil:
	case same(c.Stdout, c.Stderr):
		cmd.Stderr = cmd.Stdout
	default:
		cmd.Stderr, err = ps.drainTo(c.Stderr)
	}
	return err
}

// feed gives a program its input. A short one fits into the pipe, and needs nobody who writes it
// while the program reads.
func (ps *pipes) feed(cmd *exec.Cmd, input io.Reader) error {
	short := false
	switch known := input.(type) {
	case *strings.Reader:
		short = known.Len() <= pipeRoom
	case *bytes.Reader:
		short = known.Len() <= pipeRoom
	}
	r, w, err := newPipe(false, !short)
	if err != nil {
		return err
	}
	cmd.Stdin, ps.child = r, append(ps.child, r)
	if short {
		_, err := io.Copy(w, input)
		w.Close()
		return err
	}
	ps.input = w
	go func() {
		_, _ = io.Copy(w, input) // a program may ignore its input
		w.Close()
	}()
	return nil
}

// drainTo passes a file to the program directly and any other writer through a pipe.
func (ps *pipes) drainTo(dst io.Writer) (io.Writer, error) {
	if f, ok := dst.(*os.File); ok {
		return f, nil
	}
	r, w, err := newPipe(true, false)
	if err != nil {
		return nil, err
	}
	ps.child, ps.output = append(ps.child, w), append(ps.output, r)
	ps.copying.Add(1)
	go func() {
		defer ps.endCopy()
		if err := copyAll(dst, r); err != nil {
			_ = copyAll(io.Discard, r) // keep the program from blocking
		}
	}()
	return w, nil
}

func (ps *pipes) endCopy() {
	if ps.copying.Add(-1) == 0 {
		close(ps.copied)
	}
}

// buffers are for copyAll. Most programs write less than a buffer holds, and each has two streams.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func copyAll(dst io.Writer, src io.Reader) error {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	// Without its methods, a file cannot bring a buffer of its own.
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, buffer[:])
	return err
}

// same reports whether two writers are equal. Writers that cannot be compared are not.
func same(a, b io.Writer) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

func (ps *pipes) closeChildEnds() {
	for _, f := range ps.child {
		f.Close()
	}
}

func (ps *pipes) closeAll() {
	ps.closeChildEnds()
	if ps.input != nil {
		ps.input.Close()
	}
	for _, f := range ps.output {
		f.Close()
	}
	<-ps.copied
}

// drain reads the remaining output of a program that has ended. A descendant that holds the
// other end longer than drainTime has escaped its process group and is killed.
func (ps *pipes) drain(m mark) {
	if ps.input != nil {
		ps.input.Close()
	}
	select {
	case <-ps.copied:
	default:
		ps.drainSlowly(m)
	}
	for _, f := range ps.output {
		f.Close()
	}
}

func (ps *pipes) drainSlowly(m mark) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-ps.copied:
	case <-timer.C:
		m.kill()
	}
	for _, f := range ps.output {
		_ = f.SetReadDeadline(time.Now().Add(lastTime))
	}
	<-ps.copied
}
