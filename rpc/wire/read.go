package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// objects is the stream as the connection sees it.
type objects struct{ s *Stream }

func (o objects) Close() error { return o.s.Close() }

// ReadObject gives the connection the next request: its fresh id and its
// method. The params follow by way of received; the library would decode and
// encode them again, in another order and with duplicate members gone, at
// several times their memory.
func (o objects) ReadObject(v any) error {
	j, id, err := o.s.next()
	if err != nil {
		return err
	}
	o.s.params = j.params
	object := make([]byte, 0, 48+len(j.method))
	object = append(object, `{"method":`...)
	object = append(object, j.method...)
	if j.kind == request {
		object = append(object, `,"id":`...)
		object = strconv.AppendUint(object, id, 10)
	}
	object = append(object, '}')
	if u, ok := v.(json.Unmarshaler); ok {
		return u.UnmarshalJSON(object)
	}
	return json.Unmarshal(object, v)
}

// received completes the request that ReadObject has just given. The
// connection calls it before the handler.
func (s *Stream) received(req *jsonrpc2.Request, _ *jsonrpc2.Response) {
	if req != nil && s.params != nil {
		params := s.params
		req.Params = &params
	}
	s.params = nil
}

// next gives the next job to hand out, with its fresh id if it is a request.
// It answers everything else itself.
func (s *Stream) next() (job, uint64, error) {
	for {
		for s.taken < len(s.ready) {
			j := s.ready[s.taken]
			s.ready[s.taken] = job{}
			s.taken++
			if id, ok := s.admit(j); ok {
				return j, id, nil
			}
		}
		if err := s.read(); err != nil {
			return job{}, 0, err
		}
	}
}

// read fills ready from the next message. At the end of the input it drains
// the stream before it says so.
func (s *Stream) read() error {
	if err := s.Err(); err != nil {
		return err
	}
	if s.ended {
		return io.EOF
	}
	if s.stopped.Load() {
		<-s.done
		return s.Err()
	}
	data, err := s.in.next()
	var fault *Error
	switch {
	case errors.As(err, &fault):
		s.refuse(job{}, fault)
		return nil
	case errors.Is(err, ErrForeign):
		s.refuse(job{}, parseError(err.Error()))
		s.failAfterFlush(err)
		return err
	case errors.Is(err, io.EOF):
		s.noAnswers()
		s.drain()
		s.ended = true
		return io.EOF
	case err != nil:
		s.Fail(err)
		return err
	}
	defer s.parser.forget()
	list, isBatch, fault := s.parser.parse(data, s.opts.MaxBatch)
	if fault != nil {
		s.refuse(job{}, fault)
		return nil
	}
	var b *batch
	if isBatch {
		b = newBatch(list)
	}
	s.ready, s.taken = s.ready[:0], 0
	for i, e := range list {
		if len(data) > readSize && e.size < len(data)/2 {
			e.detach()
		}
		s.ready = append(s.ready, job{envelope: e, batch: b, slot: i})
	}
	return nil
}

// failAfterFlush ends the stream once queued output is written, for which it waits
// at most Options.CloseTimeout.
func (s *Stream) failAfterFlush(err error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.CloseTimeout)
	defer cancel()
	_ = s.Flush(ctx) // it ends in any case
	s.Fail(err)
}

// admit says whether a job is for the handler, and registers it if it is owed
// a reply.
func (s *Stream) admit(j job) (id uint64, ok bool) {
	switch j.kind {
	case notification:
		return 0, true
	case invalid:
		s.refuse(j, j.err)
		return 0, false
	case response:
		s.answered(j.envelope)
		return 0, false
	}
	if !s.waitRoom() {
		s.refuse(j, busy("bytes of output unread", s.opts.MaxQueued))
		return 0, false
	}
	id, fault := s.register(j)
	if fault != nil {
		s.refuse(j, fault)
	}
	return id, fault == nil
}

// register puts a request in flight, unless too many are.
func (s *Stream) register(j job) (uint64, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.pending); {
	case n >= s.opts.MaxInFlight:
		return 0, busy("requests in flight", s.opts.MaxInFlight)
	case n > 0 && s.holding+j.size > s.opts.MaxInFlightBytes:
		return 0, busy("bytes of requests in flight", s.opts.MaxInFlightBytes)
	}
	s.lastID++
	s.pending[s.lastID] = &inFlight{job: j}
	s.holding += j.size
	return s.lastID, nil
}

// refuse answers a job with the stream's own error, whether or not the output
// has room; but it waits first while too many such answers wait.
func (s *Stream) refuse(j job, fault *Error) {
	_ = s.wait(s.ctx, func() bool { return s.own < maxOwnQueued })
	reply := encodeReply(j.id, nil, fault.Reply())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answerLocked(j, payload{data: reply}, true)
}
