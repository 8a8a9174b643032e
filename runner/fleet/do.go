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
	"waza/runner/fleet/bundle"
	"waza/runner/fleet/seal"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/trial"
)

// Do implements [trial.FleetTrials].
func (r *run) Do(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial {
	w := &order{Order: o, id: OrderID(o), class: r.classes[o.TaskNum-1], env: env, published: time.Now(), done: make(chan *arrival, 1)}
	defer w.leave()
	if a := r.expect(w); a != nil {
		return r.accept(ctx, w, a)
	}
	defer r.leave(w)
	if !r.held[w.id] {
		switch err := r.publish(ctx, w); {
		case err != nil && ctx.Err() != nil:
			return r.cancelled(ctx, w)
		case err != nil:
			return trial.Broken(ctx, o, err)
		}
	}
	r.markStored(w)
	return r.await(ctx, w)
}

// markStored records that the stream has an order.
func (r *run) markStored(w *order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.stored = time.Now()
}

// expect registers that a trial is waited for, or returns its result if it has arrived before.
func (r *run) expect(w *order) *arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.early[w.id]; a != nil {
		delete(r.early, w.id)
		return a
	}
	r.orders[w.id] = w
	q := r.queues[w.class]
	if q.waiting++; q.waiting == 1 {
		q.last = time.Now()
	}
	r.fleet.o.Metrics.queued(1, 0)
	return nil
}

// leave removes an order whose result is no longer waited for.
func (r *run) leave(w *order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orders[w.id] != w {
		return
	}
	delete(r.orders, w.id)
	r.uncountLocked(w)
}

// uncountLocked removes an order from the counts.
func (r *run) uncountLocked(w *order) {
	q := r.queues[w.class]
	if w.running {
		q.started--
		r.fleet.o.Metrics.queued(0, -1)
	} else {
		q.waiting--
		r.fleet.o.Metrics.queued(-1, 0)
	}
}

// Time limits for the end of a trial that the run no longer needs.
const (
	// cancelTime is how long workers can take to send the partial record of a cancelled trial.
	cancelTime = 3 * time.Second
	// noteTime is how long it can take until the run learns that a trial has started.
	noteTime = 300 * time.Millisecond
)

// await waits for the result of an order. The order can be dropped until it has started.
func (r *run) await(ctx context.Context, w *order) *record.Trial {
	var late <-chan time.Time
	stopping, closed := w.env.Stopping, w.env.Closed
	for {
		select {
		case a := <-w.done:
			return r.accept(ctx, w, a)
		case <-stopping:
			stopping, closed = nil, nil
			r.become(Stopping)
			late = time.After(noteTime)
		case <-closed:
			stopping, closed = nil, nil
			late = time.After(noteTime)
		case <-late:
			if r.drop(w) {
				return notStarted(w.Order, record.Skipped, r.skipReason(w))
			}
			late = nil // it is running, and can finish
		case <-ctx.Done():
			return r.cancelled(ctx, w)
		}
	}
}

// skipReason returns the reason why an order that has not started is no longer needed.
func (r *run) skipReason(w *order) string { return cmp.Or(w.reasonToSkip(), trial.Stopped) }

// cancelled returns the result of a trial of a cancelled run.
func (r *run) cancelled(ctx context.Context, w *order) *record.Trial {
	r.become(Over)
	timer := time.NewTimer(noteTime) // until it is known whether the trial has started
	defer timer.Stop()
	for range 2 {
		select {
		case a := <-w.done:
			return r.accept(ctx, w, a)
		case <-timer.C:
		}
		if !r.hasStarted(w) {
			return notStarted(w.Order, record.Cancelled, "not started: "+context.Cause(ctx).Error())
		}
		timer.Reset(cancelTime)
	}
	return trial.Broken(ctx, w.Order, context.Cause(ctx))
}

// notStarted returns the result of a trial that did not start.
func notStarted(o *record.Order, v record.Verdict, why string) *record.Trial {
	return &record.Trial{TaskID: o.TaskID, TrialNum: o.Num, Hash: o.Hash, Verdict: v, Error: why, Graders: []record.Grade{}, Transcript: []record.Entry{}}
}

func (r *run) hasStarted(w *order) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.running
}

// drop removes an order that has not started, and reports whether it did. An order that has
// started can finish, and one with a result is done.
func (r *run) drop(w *order) bool {
	r.mu.Lock()
	if r.orders[w.id] != w || w.running && w.skip == "" {
		r.mu.Unlock()
		return false
	}
	delete(r.orders, w.id)
	r.uncountLocked(w)
	r.mu.Unlock()
	r.control(Control{Drop: []string{w.id}})
	r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, openTime)
		defer cancel()
		if s, err := r.place.JS.Stream(ctx, r.place.Orders); err == nil {
			_ = s.Purge(ctx, jetstream.WithPurgeSubject(r.place.Order(w.class, w.RunID, w.id))) // Close purges the rest
		}
	})
	return true
}

func (r *run) control(c Control) {
	b, err := json.Marshal(c)
	if err == nil {
		err = r.conn.NATS().Publish(r.place.Control(r.spec.RunID), b)
	}
	if err != nil {
		r.fleet.o.Log.Debug("request to workers not sent", "run", r.spec.RunID, "error", err)
	}
}

// publish adds an order to the stream. It retries until it succeeds, because a stream can be
// full, or temporarily without a leader.
func (r *run) publish(ctx context.Context, w *order) error {
	msg, err := r.encode(ctx, w)
	if err != nil {
		return err
	}
	for wait := retryPause; ; wait = min(2*wait, maxRetryPause) {
		err := r.publishOnce(ctx, w, msg)
		switch {
		case err == nil:
			r.fleet.o.Metrics.order(orderPublished)
			return nil
		case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
			return executor.Permanent(fmt.Errorf("order not published: %w", err))
		}
		if why := r.brokenBy(); why != nil {
			return executor.Permanent(why)
		}
		r.fleet.o.Log.Debug("order not published yet", "run", r.spec.RunID, "order", w.id, "error", err)
		if err := pause.About(ctx, wait); err != nil {
			return err
		}
	}
}

const (
	retryPause    = 50 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// publishOnce publishes an order and waits until the stream has it.
func (r *run) publishOnce(ctx context.Context, w *order, msg *nats.Msg) error {
	p := &publication{order: w, msg: msg, sent: make(chan struct{})}
	select {
	case r.publications <- p:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-p.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.err != nil {
		return p.err
	}
	select {
	case <-p.future.Ok():
		return nil
	case err := <-p.future.Err():
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

// sendOrders publishes orders until the run is closed.
func (r *run) sendOrders() {
	for {
		var list []*publication
		select {
		case p := <-r.publications:
			list = append(list, p)
		case <-r.ctx.Done():
			return
		}
		late := time.After(gatherTime)
	gather:
		for len(list) < maxGathered {
			select {
			case p := <-r.publications:
				list = append(list, p)
			case <-late:
				break gather
			}
		}
		slices.SortStableFunc(list, func(a, b *publication) int {
			return cmp.Or(cmp.Compare(a.TaskNum, b.TaskNum), cmp.Compare(a.Num, b.Num))
		})
		for _, p := range list {
			p.future, p.err = r.place.JS.PublishMsgAsync(p.msg)
			close(p.sent)
		}
	}
}

// encode returns the message of an order.
func (r *run) encode(ctx context.Context, w *order) (*nats.Msg, error) {
	m := Order{
		Protocol: Protocol, Run: w.RunID, ID: w.id, Plan: r.plan, Files: r.files, Task: w.TaskNum, Num: w.Num, Hash: w.Hash,
		Expires: r.created.Add(Lifetime),
	}
	if t := r.spec.Orders[w.TaskNum-1]; !maps.Equal(t.Params, w.Params) {
		m.Params = w.Params
	}
	if w.Baseline != nil {
		b, err := json.Marshal(w.Baseline)
		if err != nil {
			return nil, err
		}
		if m.Baseline = b; len(b) > MaxInline {
			m.Baseline = nil
			if m.Object, err = bundle.Keep(ctx, r.store, b); err != nil {
				return nil, err
			}
		}
	}
	if s := r.signer; s != nil {
		m.Owner = s.Public()
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return nil, err
	}
	msg := nats.NewMsg(r.place.Order(w.class, w.RunID, w.id))
	msg.Data = body
	msg.Header.Set(nats.MsgIdHdr, w.RunID+"/"+w.id+"/"+r.created.Format(time.RFC3339Nano)+"/"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if s := r.signer; s != nil {
		sealed := s.Sign(r.place.Team, msg.Subject, body)
		msg.Header.Set(seal.HeaderKey, sealed.Key)
		msg.Header.Set(seal.HeaderSignature, sealed.Signature)
	}
	return msg, nil
}
