package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/internal/secrets"
)

// Limits on the data of an agent that waza holds in memory.
const (
	maxLine   = 8 << 20  // bytes of one message
	maxTrial  = 64 << 20 // bytes of all messages of one trial, see acp.maxTrial
	maxOutbox = 64 << 20 // bytes waiting for an agent that does not read
	maxAhead  = 256      // messages waiting to be handled
	maxStderr = 16 << 10 // bytes kept of its latest standard error
)

var (
	errFlood = errors.New("the agent sent too much in one trial")
	errLong  = fmt.Errorf("the agent sent a message of more than %d MiB", maxLine>>20)
)

// tap is the reader through which the connection reads the agent's output. It works by lines and
// drops lines that are not messages. It is never more than maxAhead messages ahead of their
// handling, because the library drops the connection when its queue is full. It fails after
// maxTrial bytes in one trial. Only one goroutine can call Read.
type tap struct {
	lines *bufio.Reader
	open  chan struct{} // closed when the connection can be read
	ended <-chan struct{}
	limit int64         // maximum number of bytes in one trial
	ahead chan struct{} // holds one element for each unhandled message
	fail  func(error)   // ends the agent
	line  []byte        // rest of the current line
	hide  *secrets.Redactor

	bytes atomic.Int64 // since the start of the trial
	heard atomic.Bool  // a message came

	mu      sync.Mutex // guards the fields below
	rubbish int        // number of lines that were not messages
	sample  string     // the first of them
}

func newTap(r io.Reader, limit int64, ended <-chan struct{}, fail func(error)) *tap {
	return &tap{
		lines: bufio.NewReaderSize(r, 64<<10), limit: limit, ended: ended, fail: fail,
		open: make(chan struct{}), ahead: make(chan struct{}, maxAhead),
	}
}

// Read returns at most one line, so that the reader is never more than a line ahead.
func (t *tap) Read(b []byte) (int, error) {
	<-t.open
	for len(t.line) == 0 {
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, t.line)
	t.line = t.line[n:]
	return n, nil
}

func (t *tap) next() error {
	line, err := t.readLine()
	if errors.Is(err, errLong) || errors.Is(err, errFlood) {
		t.fail(err)
	}
	if err != nil && len(line) == 0 {
		return err
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var m struct { // decoded like in the library, so that both accept the same messages
		JSONRPC string            `json:"jsonrpc"`
		ID      *json.RawMessage  `json:"id"`
		Method  string            `json:"method"`
		Params  json.RawMessage   `json:"params"`
		Result  json.RawMessage   `json:"result"`
		Error   *sdk.RequestError `json:"error"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method == "" && m.ID == nil {
		t.note(line)
		return nil
	}
	t.heard.Store(true)
	if m.Method != "" && (m.ID != nil || m.Method != "$/cancel_request") {
		select {
		case t.ahead <- struct{}{}:
		case <-t.ended:
			return io.EOF
		}
	}
	t.line = append(bytes.TrimRight(line, "\r\n"), '\n')
	return nil
}

// handled makes room for another message.
func (t *tap) handled() { <-t.ahead }

func (t *tap) readLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := t.lines.ReadSlice('\n')
		if t.bytes.Add(int64(len(piece))) > t.limit {
			return nil, fmt.Errorf("%w: more than %d MiB", errFlood, t.limit>>20)
		}
		line = append(line, piece...)
		if len(line) > maxLine {
			return nil, errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (t *tap) note(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rubbish++
	if t.sample == "" {
		sample := t.hide.Text(string(line))
		t.sample = sample[:min(len(sample), 120)]
	}
}

// noise describes the lines that were not messages, or returns "" if all lines were messages.
func (t *tap) noise() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rubbish == 0 {
		return ""
	}
	return fmt.Sprintf("it printed %d lines that are not protocol messages, first %q", t.rubbish, strings.TrimSpace(t.sample))
}

// outbox buffers output for the agent until the agent reads it, so that a slow agent blocks no
// writer. Any number of goroutines can write; one reads.
type outbox struct {
	mu     sync.Mutex // guards buf and closed
	more   *sync.Cond
	buf    bytes.Buffer
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, io.ErrClosedPipe
	}
	if o.buf.Len()+len(b) > maxOutbox {
		return 0, errors.New("the agent does not read its input")
	}
	o.more.Signal()
	return o.buf.Write(b)
}

func (o *outbox) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.buf.Len() == 0 && !o.closed {
		o.more.Wait()
	}
	if o.buf.Len() == 0 {
		return 0, io.EOF
	}
	return o.buf.Read(b)
}

// Close lets the agent read the buffered data, followed by the end of input.
func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Broadcast()
	return nil
}

// tail keeps the last bytes written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex // guards the fields below
	buf []byte
	cut bool // data before buf was dropped
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = t.cut || len(b) > maxStderr
	t.buf = append(t.buf, b[max(0, len(b)-maxStderr):]...)
	if len(t.buf) > maxStderr {
		t.cut = true
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-maxStderr:]...)
	}
	return len(b), nil
}

// lines returns the last n lines.
func (t *tail) lines(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	if t.cut {
		all[0] = "…" + all[0] // this line can start within a key
	}
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
