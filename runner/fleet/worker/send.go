package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet"
	"waza/runner/internal/bundle"
	"waza/runner/pause"
	"waza/runner/record"
)

// sender publishes results, and acknowledges their orders when the server has stored them.
// Results of a run that are ready at the same time share a message. It has one goroutine, and
// one for each message on its way.
type sender struct {
	ctx    context.Context // ends when the worker stops waiting
	w      *Worker
	room   chan struct{} // limits the results on their way
	queue  chan outgoing
	closed chan struct{}
	tasks  sync.WaitGroup
}

// outgoing is a result on its way.
type outgoing struct {
	job       *job
	result    []byte // the encoded [fleet.Result]
	cancelled bool
	since     time.Time
}

const (
	// maxUnderWay is the maximum number of results on their way for each slot.
	maxUnderWay = 8
	// maxMessage is the maximum size of the results of one message, in bytes.
	maxMessage = 512 << 10
	// maxTogether is the maximum number of results of one message.
	maxTogether = 256
)

func newSender(ctx context.Context, w *Worker) *sender {
	n := max(64, maxUnderWay*w.o.Slots)
	s := &sender{ctx: ctx, w: w, room: make(chan struct{}, n), queue: make(chan outgoing, n), closed: make(chan struct{})}
	s.tasks.Go(s.run)
	return s
}

// send publishes a result. It waits while too many are on their way.
func (s *sender) send(j *job, r fleet.Result) {
	j.mu.Lock()
	r.Notices = j.notices
	j.mu.Unlock()
	if j.work != nil {
		r.Halt = j.work.halting()
	}
	b, err := r.Encode()
	if err != nil { // everything in it was valid JSON before
		s.w.o.Log.Error("cannot encode a result", "order", j.ID, "error", err)
		s.w.jobs.remove(j)
		return
	}
	s.room <- struct{}{}
	s.queue <- outgoing{j, b, r.Cancelled, time.Now()}
}

// close waits until all results are stored and stops run. After the end of ctx it waits only
// sendTime longer. Trials with unstored results are then executed again by a different worker.
func (s *sender) close(ctx context.Context) {
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(sendTime, func() { close(late) }) })
	defer stop()
	defer close(s.closed)
	for range cap(s.room) { // no result is on its way then
		select {
		case s.room <- struct{}{}:
		case <-late:
			s.w.o.Log.Warn("results not sent; other workers execute their trials again", "results", len(s.room))
			return
		}
	}
}

// sendTime is how long results can take to be stored when the worker shuts down.
const sendTime = 2 * time.Second

func (s *sender) wait() { s.tasks.Wait() }

func (s *sender) run() {
	var held []outgoing // results of runs other than that of the last message
	for {
		if len(held) == 0 {
			select {
			case o := <-s.queue:
				held = append(held, o)
			case <-s.closed:
				return
			case <-s.ctx.Done():
				return
			}
		}
		held = s.gather(held)
		var group, rest []outgoing
		size := 0
		for _, o := range held {
			if len(group) == 0 || o.job.Run == group[0].job.Run && size+len(o.result) <= maxMessage {
				group, size = append(group, o), size+len(o.result)
			} else {
				rest = append(rest, o)
			}
		}
		held = rest
		s.publish(group)
	}
}

// gatherTime is how long a worker with other running trials waits for more results, or notes,
// for one message. Their slots are already free.
const gatherTime = 5 * time.Millisecond

// gather adds results that are ready, and those that are about to be.
func (s *sender) gather(held []outgoing) []outgoing {
	var late <-chan time.Time
	if s.w.slots.busy() > 0 {
		late = time.After(gatherTime)
	}
	for len(held) < maxTogether {
		if late == nil {
			select {
			case o := <-s.queue:
				held = append(held, o)
				continue
			default:
				return held
			}
		}
		select {
		case o := <-s.queue:
			held = append(held, o)
		case <-late:
			return held
		case <-s.ctx.Done():
			return held
		}
	}
	return held
}

// publish publishes results of one run, and retries until it succeeds.
func (s *sender) publish(group []outgoing) {
	var list [][]byte
	over := s.w.runs.state(group[0].job.Run) == fleet.Over
	for _, o := range group {
		if !over || o.cancelled { // the owner of a run that is over waits only for cancelled trials
			list = append(list, o.result)
		}
	}
	if len(list) == 0 {
		s.over(group, true)
		return
	}
	b, err := fleet.EncodeResults(s.w.o.ID, list)
	if err != nil { // it is the same for all results
		s.w.o.Log.Error("cannot encode results", "error", err)
		s.over(group, false)
		return
	}
	msg := nats.NewMsg(s.w.place.Result(group[0].job.Run))
	msg.Data = b
	msg.Header.Set(nats.MsgIdHdr, s.w.o.ID+"/"+randomText(16))
	future, err := s.w.place.JS.PublishMsgAsync(msg)
	s.tasks.Go(func() { s.follow(group, msg, future, err) })
}

const (
	sendPause    = 100 * time.Millisecond
	maxSendPause = 5 * time.Second
)

// follow waits until a message is stored.
func (s *sender) follow(group []outgoing, msg *nats.Msg, future jetstream.PubAckFuture, err error) {
	for wait := sendPause; ; wait = min(2*wait, maxSendPause) {
		if err == nil {
			select {
			case <-future.Ok():
				s.over(group, true)
				return
			case err = <-future.Err():
			case <-s.ctx.Done():
				s.over(group, false)
				return
			}
		}
		s.w.o.Log.Debug("results not stored yet", "run", group[0].job.Run, "error", err)
		if pause.About(s.ctx, wait) != nil {
			s.over(group, false)
			return
		}
		future, err = s.w.place.JS.PublishMsgAsync(msg)
	}
}

// over acknowledges the orders of stored results, and removes their jobs.
func (s *sender) over(group []outgoing, stored bool) {
	for _, o := range group {
		if stored {
			s.w.o.Metrics.took(phaseSend, o.since)
			if err := o.job.msg.Ack(); err != nil {
				s.w.o.Log.Debug("order not acknowledged; a different worker can execute it again", "order", o.job.ID, "error", err)
			}
		}
		s.w.jobs.remove(o.job)
		<-s.room
	}
}

// send sends the result and the files of the trial.
func (j *job) send(res *record.Trial) {
	w := j.worker
	r := fleet.Result{ID: j.ID, Lost: j.before, Cancelled: res.Verdict == record.Cancelled}
	defer j.work.kept.Drop(j.order)
	err := func() (err error) {
		if res.Workspace != nil { // it can refer to files
			err = w.useStore(func(ctx context.Context) (err error) {
				r.Files, err = j.work.kept.Send(ctx, w.store, j.order, res)
				return err
			})
			if err != nil {
				return err
			}
		}
		raw, err := res.AppendJSON(make([]byte, 0, usualTrial))
		if err != nil {
			return err
		}
		raw = j.work.env.Pool.Redactor().JSON(raw)
		if len(raw) <= fleet.MaxInline {
			r.Trial = raw
			return nil
		}
		return w.useStore(func(ctx context.Context) (err error) {
			r.Object, err = bundle.Keep(ctx, w.store, raw)
			return err
		})
	}()
	if err != nil {
		r.Trial, r.Object, r.Files = nil, "", nil
		r.Reason = fmt.Sprintf("worker %s could not send the result: %v", w.o.ID, err)
	}
	w.results.send(j, r)
}

// usualTrial is the capacity of the buffer for the JSON of a trial, in bytes. It grows for larger ones.
const usualTrial = 1 << 10

// useStore calls do with a time limit.
func (w *Worker) useStore(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.results.ctx, openTime)
	defer cancel()
	return do(ctx)
}

// noter publishes notes without waiting. Notes of a run within a short time share a message.
type noter struct {
	ctx   context.Context
	w     *Worker
	tasks sync.WaitGroup
	wake  chan struct{} // has a buffer of one

	mu   sync.Mutex // guards list
	list map[string][]fleet.Note
	n    int
}

// maxNotes is the maximum number of waiting notes. Further ones are dropped, because results
// contain everything important.
const maxNotes = 10_000

func newNoter(ctx context.Context, w *Worker) *noter {
	n := &noter{ctx: ctx, w: w, wake: make(chan struct{}, 1), list: map[string][]fleet.Note{}}
	n.tasks.Go(n.run)
	return n
}

func (n *noter) send(run string, note fleet.Note) {
	n.mu.Lock()
	if n.n < maxNotes {
		n.list[run] = append(n.list[run], note)
		n.n++
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *noter) wait() { n.tasks.Wait() }

func (n *noter) run() {
	for {
		select {
		case <-n.wake:
		case <-n.ctx.Done():
			return
		}
		if n.w.slots.busy() > 1 {
			_ = pause.For(n.ctx, gatherTime)
		}
		n.mu.Lock()
		list := n.list
		n.list, n.n = map[string][]fleet.Note{}, 0
		n.mu.Unlock()
		for run, notes := range list {
			b, err := json.Marshal(fleet.Notes{Worker: n.w.o.ID, List: notes})
			if err == nil {
				_ = n.w.o.Conn.NATS().Publish(n.w.place.Note(run), b)
			}
		}
	}
}
