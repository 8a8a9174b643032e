package door

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/coder/websocket"

	"waza/runner/pause"
)

// Stream is the connection as a stream of lines, for protocols that have one message per
// line: each line written is sent as a message, each message read is one line. Line ends
// within messages become spaces. Write waits while the send queue is full, Read while the
// client has sent more than Config.MessagesPerMinute. Close closes with code 1001. One goroutine may read and one may write.
func (c *Conn) Stream() io.ReadWriteCloser { return &stream{conn: c} }

type stream struct {
	conn *Conn
	in   []byte // what is left of the message that is being read
	out  []byte // a line that has not ended
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.in) == 0 {
		msg, err := s.conn.Read(s.conn.ctx)
		if err != nil {
			return 0, io.EOF
		}
		for again, ok := s.conn.Allow(); !ok; again, ok = s.conn.Allow() {
			if pause.Unless(s.conn.ctx, s.conn.Done(), again) != nil || s.conn.out.isEnding() {
				return 0, io.EOF
			}
		}
		s.in = line(msg)
	}
	n := copy(p, s.in)
	s.in = s.in[n:]
	if len(s.in) == 0 {
		s.in = nil
	}
	return n, nil
}

// errEndless is the error of a line that no client would take.
var errEndless = errors.New("line too long")

func (s *stream) Write(p []byte) (int, error) {
	most := s.conn.door.config.SendQueueBytes
	for written := 0; ; {
		end := bytes.IndexByte(p[written:], '\n')
		if end < 0 {
			if most > 0 && int64(len(s.out)+len(p)-written) > max(most, 64<<20) {
				return written, errEndless
			}
			s.out = append(s.out, p[written:]...)
			return len(p), nil
		}
		msg := slices.Concat(s.out, p[written:written+end])
		s.out = nil
		written += end + 1
		if len(bytes.TrimSpace(msg)) == 0 {
			continue
		}
		if err := s.conn.out.send(msg, true); err != nil {
			return written, err
		}
	}
}

// line makes a message one line: outside of strings, which hold no raw line ends, JSON
// takes a space as well.
func line(msg []byte) []byte {
	msg = bytes.ReplaceAll(msg, []byte("\n"), []byte(" "))
	return append(bytes.ReplaceAll(msg, []byte("\r"), []byte(" ")), '\n')
}

func (s *stream) Close() error {
	s.conn.Close(int(websocket.StatusGoingAway), "")
	return nil
}
