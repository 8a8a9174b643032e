package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet"
	"waza/runner/fleet/seal"
	"waza/runner/internal/bundle"
	"waza/runner/record"
	"waza/runner/trial"
)

// job is an order that a worker is executing.
type job struct {
	*fleet.Order
	worker *Worker
	class  string
	msg    jetstream.Msg
	work   *work         // nil until the run is prepared
	order  *record.Order // nil until then
	tries  *fleet.Tries  // nil if they are unknown
	before int           // number of workers that were lost while they executed the order
	kept   time.Time     // when the worker last reported progress to the server; used by jobs.keep

	ctx context.Context
	end context.CancelCauseFunc

	mu      sync.Mutex // guards the fields below
	notices []trial.Notice
}

// Reasons for ending a job.
var (
	errCancelled = errors.New("the run was cancelled")
	errDropped   = errors.New("the run no longer needs the trial")
	errGivenUp   = errors.New("the worker is shutting down; a different worker executes the trial")
)

// do executes the order of a message, and frees its slot. A job with a result then belongs to
// the sender.
func (w *Worker) do(msg jetstream.Msg) {
	defer w.slots.done()
	j, err := w.open(msg)
	if err != nil {
		w.refuse(msg, j, err)
		return
	}
	j.ctx, j.end = context.WithCancelCause(context.WithoutCancel(w.ending))
	defer j.end(nil)
	w.jobs.add(j)
	res, why := j.carryOut()
	cause := context.Cause(j.ctx)
	switch {
	case errors.Is(cause, errGivenUp) && (res == nil || res.Verdict == record.Cancelled):
		w.jobs.remove(j)
		j.giveBack()
	case why != nil && cause == nil:
		w.results.send(j, fleet.Result{ID: j.ID, Reason: why.Error(), Lost: j.before})
	case res == nil || errors.Is(cause, errDropped):
		w.jobs.remove(j)
		_ = msg.Ack() // its result is not needed
	default:
		w.done.Add(1)
		w.o.Metrics.did(res.Verdict)
		j.send(res)
	}
	if j.work != nil {
		j.work.leave(j)
	}
}

// open decodes an order and checks whether the worker can execute it. The job is nil if the
// order is invalid.
func (w *Worker) open(msg jetstream.Msg) (*job, error) {
	o, err := w.orders.Decode(msg.Data())
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	names, class := w.place.Names, classIn(msg.Subject())
	if err := o.Check(); err != nil {
		return nil, err
	}
	if names.Order(class, o.Run, o.ID) != msg.Subject() {
		return nil, fmt.Errorf("run %s does not match the subject %s", o.Run, msg.Subject())
	}
	j := &job{Order: o, worker: w, class: class, msg: msg, kept: time.Now(), end: func(error) {}}
	if w.o.Trust != nil {
		h := msg.Headers()
		if err := w.o.Trust.Check(names.Team, msg.Subject(), msg.Data(),
			seal.Seal{Key: h.Get(seal.HeaderKey), Signature: h.Get(seal.HeaderSignature)}); err != nil {
			return j, fmt.Errorf("not trusted: %w", err)
		}
	}
	if time.Now().After(o.Expires) {
		return j, fmt.Errorf("expired at %s", o.Expires.Format(time.RFC3339))
	}
	return j, nil
}

// classIn returns the class in the subject of an order.
func classIn(subject string) string {
	n := 0
	for part := range strings.SplitSeq(subject, ".") {
		if n++; n == 4 {
			return part
		}
	}
	return ""
}

// refuse ends an order that the worker must not execute. It reports the reason to the owner, if
// the owner is known.
func (w *Worker) refuse(msg jetstream.Msg, j *job, why error) {
	w.o.Metrics.refusedOrder()
	w.o.Log.Warn("order refused", "subject", msg.Subject(), "error", why)
	if j == nil {
		_ = msg.Term()
		return
	}
	w.jobs.add(j)
	w.results.send(j, fleet.Result{
		ID: j.ID, Reason: fmt.Sprintf("worker %s refuses the order: %v", w.o.ID, why), Refused: true,
		Lost: j.before,
	})
}

// carryOut executes the trial. why is the reason if it cannot be executed. Both results are nil
// if the trial is no longer needed.
func (j *job) carryOut() (res *record.Trial, why error) {
	w := j.worker
	if w.runs.state(j.Run) != fleet.Running {
		return nil, nil // the owner does not wait for trials that have not started
	}
	if j.learnTries(); j.before >= fleet.Deadly {
		return nil, fmt.Errorf("%d workers were lost while executing the trial; it is not started again", j.before)
	}
	var err error
	began := time.Now()
	if j.work, err = w.runs.prepare(j.ctx, j); err == nil {
		err = j.complete(j.ctx)
	}
	w.o.Metrics.took(phasePrepare, began)
	if err != nil {
		return nil, fmt.Errorf("worker %s cannot prepare the trial: %w", w.o.ID, err)
	}
	if w.runs.state(j.Run) != fleet.Running {
		return nil, nil
	}
	if j.before > 0 {
		w.repeated.Add(1)
	}
	defer w.o.Metrics.took(phaseTrial, time.Now())
	return trial.Do(j.ctx, j.work.env, j.order), nil
}

// learnTries determines how many workers were lost with the order, and records that this one
// starts it.
func (j *job) learnTries() {
	w := j.worker
	if fleet.AssumedLost(j.msg) == 0 { // the usual case, without a timer
		j.tries = new(fleet.Tries)
		return
	}
	ctx, cancel := context.WithTimeout(j.ctx, triesTime)
	defer cancel()
	var err error
	if j.tries, err = w.place.TriesOf(ctx, j.Order, j.msg); err != nil {
		w.o.Log.Debug("number of workers lost with an order is unknown", "order", j.ID, "error", err)
		return
	}
	if j.before = j.tries.Lost(); j.before >= fleet.Deadly {
		return
	}
	if err := j.tries.RecordStart(ctx, w.o.ID); err != nil {
		w.o.Log.Debug("start of an order not recorded", "order", j.ID, "error", err)
	}
}

// triesTime is the time limit for determining how many workers were lost.
const triesTime = 5 * time.Second

// complete adds the properties of this trial to the order of the task.
func (j *job) complete(ctx context.Context) error {
	o, err := j.work.order(j.Task)
	if err != nil {
		return err
	}
	own := *o
	own.RunID, own.Num, own.Hash, own.Workers = j.Run, j.Num, j.Hash, j.worker.o.Slots
	if j.Params != nil {
		own.Params = j.Params
	}
	raw := []byte(j.Baseline)
	if j.Object != "" {
		if raw, err = bundle.Fetch(ctx, j.worker.store, j.Object, fleet.MaxResult); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	if len(raw) > 0 {
		own.Baseline = new(record.Baseline)
		if err := json.Unmarshal(raw, own.Baseline); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	j.work.connect(j, &own)
	j.order = &own
	return nil
}

// giveBack lets a different worker execute the order of a job. This worker does not count as
// lost.
func (j *job) giveBack() {
	w := j.worker
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	assumed := fleet.AssumedLost(j.msg)
	if j.tries != nil {
		if err := j.tries.Undo(ctx); err != nil {
			w.o.Log.Debug("record of a returned order not removed; the worker counts as lost", "order", j.ID, "error", err)
		}
	}
	w.again(ctx, j.msg, assumed)
}

// again publishes an order again and then acknowledges its old message.
func (w *Worker) again(ctx context.Context, old jetstream.Msg, assumed int) {
	msg := nats.NewMsg(old.Subject())
	msg.Data = old.Data()
	for name, values := range old.Headers() {
		if !strings.HasPrefix(name, "Nats-") {
			msg.Header[name] = values
		}
	}
	msg.Header.Set(fleet.HeaderLost, strconv.Itoa(assumed))
	if _, err := w.place.JS.PublishMsg(ctx, msg); err != nil {
		_ = old.Nak()
		w.o.Log.Warn("order not returned; a different worker gets it later", "subject", old.Subject(), "error", err)
		return
	}
	_ = old.DoubleAck(ctx)
}

const giveBackTime = 3 * time.Second

// note keeps a notice for the result and publishes it at once.
func (j *job) note(n trial.Notice) {
	j.mu.Lock()
	index := len(j.notices)
	if index < fleet.MaxNotices {
		j.notices = append(j.notices, n)
	}
	j.mu.Unlock()
	if index < fleet.MaxNotices {
		j.worker.notes.send(j.Run, fleet.Note{ID: j.ID, Index: index, Notice: &n})
	}
}
