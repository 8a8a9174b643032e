package door

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/coder/websocket"
)

// Stream returns the connection as a stream of lines, for protocols with one message per line.
// Each written line is sent as a message, and each received message is read as one line. Line
// ends within messages become spaces. Write blocks while the send queue is full, Read while the
// client exceeds Config.MessagesPerMinute. Close closes with code 1001. One goroutine can read
// while another writes.
func (c *Conn) Stream() io.ReadWriteCloser { return &stream{conn: c} }

type stream struct {
	conn *Conn
	in   []byte // the unread rest of the last message
	out  []byte // an incomplete line
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.in) == 0 {
		msg, err := s.conn.Read(s.conn.ctx)
		if err != nil {
			return 0, io.EOF
		}
		if !s.conn.Wait() {
			return 0, io.EOF
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

// errEndless is the error of a line that is too long for any client.
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

// line converts a message to one line. In JSON, raw line ends occur only outside of strings,
// where a space has the same meaning.
func line(msg []byte) []byte {
	msg = bytes.ReplaceAll(msg, []byte("\n"), []byte(" "))
	return append(bytes.ReplaceAll(msg, []byte("\r"), []byte(" ")), '\n')
}

func (s *stream) Close() error {
	s.conn.Close(int(websocket.StatusGoingAway), "")
	return nil
}
