package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ErrUnanswered is what Call gives when the client has left too many requests
// unanswered, or its input has ended.
var ErrUnanswered = errors.New("client does not answer")

// maxAsked is how many requests the client may leave unanswered.
const maxAsked = 100

// Call sends the client a request and waits for its response, until ctx or the
// stream ends. It must not be called by the reader, which takes the response in. It
// blocks as Notify does while much output waits. params is encoded with Encode;
// nil leaves them out. An error of the client's is an [*Error]. The result is the
// caller's.
func (s *Stream) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, answer, err := s.ask()
	if err != nil {
		return nil, err
	}
	defer s.unask(id)
	if err := s.sendRequest(ctx, id, method, params); err != nil {
		return nil, err
	}
	select {
	case e, ok := <-answer:
		if !ok {
			return nil, ErrUnanswered
		}
		return e.outcome()
	case <-s.done:
		return nil, s.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask makes an id that no request of the client's looks like, and the channel that
// gets the response to it.
func (s *Stream) ask() (id string, answer <-chan envelope, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf || len(s.asked) >= maxAsked {
		return "", nil, ErrUnanswered
	}
	s.lastAsk++
	id = "waza-" + strconv.FormatUint(s.lastAsk, 10)
	c := make(chan envelope, 1)
	s.asked[id] = c
	return id, c, nil
}

func (s *Stream) unask(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

func (s *Stream) sendRequest(ctx context.Context, id, method string, params any) error {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = Encode(params); err != nil {
			return fmt.Errorf("params of %s: %w", method, err)
		}
	}
	message := encodeNotification(method, raw)
	message = append(message[:len(message)-1], `,"id":"`+id+`"}`...)
	return s.wait(ctx, func() bool {
		if s.queued >= s.opts.NotifyQueued {
			return false
		}
		s.queueLocked(message, false)
		return true
	})
}

// answered hands a response over to who waits for it. Nobody may.
func (s *Stream) answered(e envelope) {
	if len(e.id) == 0 || e.id[0] != '"' {
		return
	}
	id := string(unquote(e.id))
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.asked[id]; c != nil {
		delete(s.asked, id)
		c <- e // there is room: each id is answered once
	}
}

// noAnswers says that the input has ended, so that nobody waits for what cannot come.
func (s *Stream) noAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
	for id, c := range s.asked {
		delete(s.asked, id)
		close(c)
	}
}

// outcome is what a response says.
func (e *envelope) outcome() (json.RawMessage, error) {
	if e.fault == nil {
		return e.result, nil
	}
	var fault struct {
		Code    int64
		Message string
	}
	if err := json.Unmarshal(e.fault, &fault); err != nil {
		return nil, &Error{Code: CodeInternalError, Message: "the client's error cannot be read"}
	}
	return nil, &Error{Code: fault.Code, Message: fault.Message}
}
