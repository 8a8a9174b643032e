package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// ErrUnanswered is what Call gives when the client has left too many requests
// unanswered, or its input has ended.
var ErrUnanswered = errors.New("client does not answer")

// maxAsked is how many requests the client may leave unanswered.
const maxAsked = 100

// questions are the requests to the client that it has yet to answer.
type questions struct {
	mu    sync.Mutex               // guards the fields below
	asked map[string]chan envelope // by id
	last  uint64
	ended bool // the input has: nothing is answered any more
}

// Call sends the client a request and waits for its response, until ctx or the
// stream ends. It must not be called by the reader, which takes the response in. It
// blocks as Notify does while much output waits. params is encoded with Encode;
// nil leaves them out. An error of the client's is an [*Error]. The result is the
// caller's.
func (s *Stream) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, answer, err := s.questions.ask()
	if err != nil {
		return nil, err
	}
	defer s.questions.forget(id)
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
func (q *questions) ask() (id string, answer <-chan envelope, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || len(q.asked) >= maxAsked {
		return "", nil, ErrUnanswered
	}
	q.last++
	id = "waza-" + strconv.FormatUint(q.last, 10)
	c := make(chan envelope, 1)
	q.asked[id] = c
	return id, c, nil
}

func (q *questions) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, id)
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
		s.queueLocked(payload{data: message}, false)
		return true
	})
}

// answered hands a response over to who waits for it. Nobody may.
func (q *questions) answered(e envelope) {
	if len(e.id) == 0 || e.id[0] != '"' {
		return
	}
	id := string(unquote(e.id))
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.asked[id]; c != nil {
		delete(q.asked, id)
		c <- e // there is room: each id is answered once
	}
}

// end says that the input has ended, so that nobody waits for what cannot come.
func (q *questions) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for id, c := range q.asked {
		delete(q.asked, id)
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
