package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
	"waza/runner/fleet/seal"
	"waza/runner/internal/bundle"
	"waza/runner/pause"
)

// publisher adds the orders of a run to the stream. It owns the queue of orders on their way, and
// the goroutine that sends them in the order of the plan.
type publisher struct {
	*scope
	book  *book
	queue chan *publication
	// terms is the JSON of the terms of the run's orders, and idPrefix starts the ids of their
	// messages.
	terms    []byte
	idPrefix string
}

func newPublisher(s *scope, b *book) (*publisher, error) {
	t := Terms{Protocol: Protocol, Run: s.spec.RunID, Plan: s.plan, Files: s.files, Expires: s.created.Add(Lifetime)}
	if s.signer != nil {
		t.Owner = s.signer.Public()
	}
	terms, err := json.Marshal(&t)
	return &publisher{
		scope: s, book: b, queue: make(chan *publication), terms: terms,
		idPrefix: s.spec.RunID + "/" + s.created.Format(time.RFC3339Nano) + "/",
	}, err
}

// publish adds an order to the stream. It retries until it succeeds, because a stream can be
// full, or temporarily without a leader.
func (p *publisher) publish(ctx context.Context, w *order) error {
	msg, err := p.encode(ctx, w)
	if err != nil {
		return err
	}
	for wait := retryPause; ; wait = min(2*wait, maxRetryPause) {
		err := p.publishOnce(ctx, w, msg)
		switch {
		case err == nil:
			p.metrics.order(orderPublished)
			return nil
		case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
			return executor.Permanent(fmt.Errorf("order not published: %w", err))
		}
		if why := p.book.brokenBy(); why != nil {
			return executor.Permanent(why)
		}
		p.log.Debug("order not published yet", "run", p.spec.RunID, "order", w.id, "error", err)
		if err := pause.About(ctx, wait); err != nil {
			return err
		}
	}
}

const (
	retryPause    = 50 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// publishAgain publishes an order again, without waiting.
func (p *publisher) publishAgain(w *order) {
	p.tasks.Go(func() { _ = p.publish(p.ctx, w) }) // ends with the run
}

// publishOnce publishes an order and waits until the stream has it.
func (p *publisher) publishOnce(ctx context.Context, w *order, msg *nats.Msg) error {
	x := &publication{order: w, msg: msg, sent: make(chan struct{})}
	select {
	case p.queue <- x:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-x.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if x.err != nil {
		return x.err
	}
	select {
	case <-x.future.Ok():
		return nil
	case err := <-x.future.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// publication is an order on its way to the stream.
type publication struct {
	*order
	msg    *nats.Msg
	sent   chan struct{} // closed when the fields below are set
	future jetstream.PubAckFuture
	err    error
}

const (
	// gatherTime is how long orders are collected before they are published, and maxGathered is
	// the maximum number collected. Collected orders are published in the order of the plan.
	gatherTime  = time.Millisecond
	maxGathered = 1024
)

// send publishes the orders of the queue until the run is closed.
func (p *publisher) send() {
	for {
		var list []*publication
		select {
		case x := <-p.queue:
			list = append(list, x)
		case <-p.ctx.Done():
			return
		}
		late := time.After(gatherTime)
	gather:
		for len(list) < maxGathered {
			select {
			case x := <-p.queue:
				list = append(list, x)
			case <-late:
				break gather
			}
		}
		slices.SortStableFunc(list, func(a, b *publication) int {
			return cmp.Or(cmp.Compare(a.TaskNum, b.TaskNum), cmp.Compare(a.Num, b.Num))
		})
		for _, x := range list {
			x.future, x.err = p.place.JS.PublishMsgAsync(x.msg)
			close(x.sent)
		}
	}
}

// encode returns the message of an order.
func (p *publisher) encode(ctx context.Context, w *order) (*nats.Msg, error) {
	m := Order{Request: Request{ID: w.id, Task: w.TaskNum, Num: w.Num, Hash: w.Hash}}
	if t := p.spec.Orders[w.TaskNum-1]; !maps.Equal(t.Params, w.Params) {
		m.Params = w.Params
	}
	if w.Baseline != nil {
		b, err := json.Marshal(w.Baseline)
		if err != nil {
			return nil, err
		}
		if m.Baseline = b; len(b) > MaxInline {
			m.Baseline = nil
			if m.Object, err = bundle.Keep(ctx, p.store, b); err != nil {
				return nil, err
			}
		}
	}
	body, err := m.Encode(p.terms)
	if err != nil {
		return nil, err
	}
	msg := nats.NewMsg(p.place.Order(w.class, w.RunID, w.id))
	msg.Data = body
	msg.Header.Set(nats.MsgIdHdr, p.idPrefix+w.id+"/"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if s := p.signer; s != nil {
		sealed := s.Sign(p.place.Team, msg.Subject, body)
		msg.Header.Set(seal.HeaderKey, sealed.Key)
		msg.Header.Set(seal.HeaderSignature, sealed.Signature)
	}
	return msg, nil
}
