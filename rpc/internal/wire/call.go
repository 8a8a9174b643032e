package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
)

// ErrUnanswered is the error of Call if the client has left too many requests unanswered, or its
// input has ended.
var ErrUnanswered = errors.New("client does not answer")

// maxAsked limits the unanswered requests to the client.
const maxAsked = 100

// pendingCalls holds the requests that the client has not answered yet.
type pendingCalls struct {
	mu    sync.Mutex               // guards the fields below
	byID  map[string]chan envelope // by id
	last  uint64
	ended bool // the input has ended: there will be no more answers
}

// Call sends the client a request and waits for its response, until ctx or the stream ends. The
// reader must not call it, because the reader receives the response. Like Notify, Call blocks
// while much output waits. params is encoded with jsonwalk.Encode; nil omits it. An error reply of the
// client is returned as an [*Error]. The caller owns the result.
func (s *Stream) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, answer, err := s.calls.add()
	if err != nil {
		return nil, err
	}
	defer s.calls.forget(id)
	if err := s.send(ctx, method, params, id); err != nil {
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

// add returns an id that differs from all ids of the client, and the channel for the response.
func (q *pendingCalls) add() (id string, answer <-chan envelope, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || len(q.byID) >= maxAsked {
		return "", nil, ErrUnanswered
	}
	q.last++
	id = "waza-" + strconv.FormatUint(q.last, 10)
	c := make(chan envelope, 1)
	q.byID[id] = c
	return id, c, nil
}

func (q *pendingCalls) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byID, id)
}

// answered passes a response to the goroutine that waits for it, if any.
func (q *pendingCalls) answered(e envelope) {
	if len(e.id) == 0 || e.id[0] != '"' {
		return
	}
	id := string(unquote(e.id))
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.byID[id]; c != nil {
		delete(q.byID, id)
		c <- e // never blocks: each id is answered once
	}
}

// end wakes all waiting goroutines, because the input has ended.
func (q *pendingCalls) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for id, c := range q.byID {
		delete(q.byID, id)
		close(c)
	}
}

// outcome returns the result or error of a response.
func (e *envelope) outcome() (json.RawMessage, error) {
	if e.fault == nil {
		return e.result, nil
	}
	var fault struct {
		Code    int64
		Message string
	}
	if err := json.Unmarshal(e.fault, &fault); err != nil {
		return nil, &Error{Code: CodeInternalError, Message: "cannot read the client's error"}
	}
	return nil, &Error{Code: fault.Code, Message: fault.Message}
}
