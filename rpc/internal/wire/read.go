package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"
)

// A reader is the connection's view of the stream. Only the connection's goroutine uses it,
// except for stopped.
type reader struct {
	s  *Stream
	in *framer

	parser  parser
	ready   []job           // the members of the last message
	taken   int             // number of members handed out or answered
	params  json.RawMessage // params of the request handed out last
	ended   bool            // the input has ended and everything is drained
	stopped atomic.Bool     // Stream.StopReading was called
}

func (r *reader) Close() error { return r.s.Close() }

// ReadObject returns the next request to the connection: its fresh id and its method. The params
// follow with received. Otherwise the library would decode and encode them again, which changes
// their order, drops duplicate members, and needs several times their memory.
func (r *reader) ReadObject(v any) error {
	j, id, err := r.next()
	if err != nil {
		return err
	}
	r.params = j.params
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

// received adds the params to the request that ReadObject has just returned. The connection
// calls it before the handler.
func (r *reader) received(req *jsonrpc2.Request, _ *jsonrpc2.Response) {
	if req != nil && r.params != nil {
		params := r.params
		req.Params = &params
	}
	r.params = nil
}

// next returns the next job for the handler, with its fresh id if it is a request. It answers
// all other jobs itself.
func (r *reader) next() (job, uint64, error) {
	for {
		for r.taken < len(r.ready) {
			j := r.ready[r.taken]
			r.ready[r.taken] = job{}
			r.taken++
			if id, ok := r.admit(j); ok {
				return j, id, nil
			}
		}
		if err := r.read(); err != nil {
			return job{}, 0, err
		}
	}
}

// read fills ready from the next message. At the end of the input it drains the stream before it
// returns the end.
func (r *reader) read() error {
	if err := r.s.Err(); err != nil {
		return err
	}
	if r.ended {
		return io.EOF
	}
	if r.stopped.Load() {
		<-r.s.done
		return r.s.Err()
	}
	data, err := r.in.next()
	var fault *Error
	switch {
	case errors.As(err, &fault):
		r.refuse(job{}, fault)
		return nil
	case errors.Is(err, ErrForeign):
		r.refuse(job{}, parseError(err.Error()))
		r.failAfterFlush(err)
		return err
	case errors.Is(err, io.EOF):
		r.s.calls.end()
		r.drain()
		r.ended = true
		return io.EOF
	case err != nil:
		r.s.Fail(err)
		return err
	}
	defer r.parser.forget()
	list, isBatch, fault := r.parser.parse(data, r.s.opts.MaxBatch)
	if fault != nil {
		r.refuse(job{}, fault)
		return nil
	}
	var b *batch
	if isBatch {
		b = newBatch(list)
	}
	r.ready, r.taken = r.ready[:0], 0
	for i, e := range list {
		if len(data) > readSize && e.size < len(data)/2 {
			e.detach()
		}
		r.ready = append(r.ready, job{envelope: e, batch: b, slot: i})
	}
	return nil
}

// failAfterFlush ends the stream once queued output is written, or after Options.CloseTimeout.
func (r *reader) failAfterFlush(err error) {
	ctx, cancel := context.WithTimeout(r.s.ctx, r.s.opts.CloseTimeout)
	defer cancel()
	_ = r.s.Flush(ctx) // the stream ends in any case
	r.s.Fail(err)
}

// admit reports whether a job is for the handler, and registers it if it needs a reply.
func (r *reader) admit(j job) (id uint64, ok bool) {
	switch j.kind {
	case notification:
		return 0, true
	case invalid:
		r.refuse(j, j.err)
		return 0, false
	case response:
		r.s.calls.answered(j.envelope)
		return 0, false
	}
	if !r.waitRoom() {
		r.refuse(j, busy("bytes of output unread", r.s.opts.MaxQueued))
		return 0, false
	}
	id, fault := r.register(j)
	if fault != nil {
		r.refuse(j, fault)
	}
	return id, fault == nil
}

// register puts a request in flight, unless too many are.
func (r *reader) register(j job) (uint64, *Error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	switch n := len(r.s.pending); {
	case n >= r.s.opts.MaxInFlight:
		return 0, busy("requests in flight", r.s.opts.MaxInFlight)
	case n > 0 && r.s.holding+j.size > r.s.opts.MaxInFlightBytes:
		return 0, busy("bytes of requests in flight", r.s.opts.MaxInFlightBytes)
	}
	r.s.lastID++
	r.s.pending[r.s.lastID] = &inFlight{job: j}
	r.s.holding += j.size
	return r.s.lastID, nil
}

// refuse replies to a job with the stream's own error, even if the output is full. It first
// waits while too many such errors are unwritten.
func (r *reader) refuse(j job, fault *Error) {
	_ = r.s.wait(r.s.ctx, func() bool { return r.s.own < maxOwnQueued })
	reply := encodeReply(j.id, nil, fault)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.answerLocked(j, payload{data: reply}, true)
}

// drain waits for replies in flight and queued output before the end of the input is reported.
func (r *reader) drain() {
	ctx, cancel := context.WithTimeout(r.s.ctx, r.s.opts.DrainTimeout)
	defer cancel()
	_ = r.s.wait(ctx, func() bool { return len(r.s.pending) == 0 }) // Err returns the reason
	if r.s.opts.OnEOF != nil {
		r.s.opts.OnEOF(r.s.ctx)
	}
	r.s.Flush(r.s.ctx)
}

// waitRoom waits briefly for the client to read, so that a client that sends many requests ahead
// is not refused because replies are fast. It gives up at once if the client has not read since
// the last attempt.
func (r *reader) waitRoom() bool {
	room := func() bool { return r.s.queued+r.s.held < r.s.opts.MaxQueued }
	r.s.mu.Lock()
	has, stalled := room(), r.s.stalled
	r.s.mu.Unlock()
	if has || stalled {
		return has
	}
	ctx, cancel := context.WithTimeout(r.s.ctx, stallTime)
	defer cancel()
	if r.s.wait(ctx, room) == nil {
		return true
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.stalled = !room()
	return !r.s.stalled
}
