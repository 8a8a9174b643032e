package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/record"
)

const (
	// lookPause is the interval at which waiting orders are checked.
	lookPause = time.Second
	// idle is how long no order of a class has started before the run looks for workers.
	idle = 4 * time.Second
	// remindPause is the time between two equal reports.
	remindPause = time.Minute
	// maxNamed is the maximum number of workers and tasks in a report.
	maxNamed = 5
)

// queue counts the orders of a class. The run's mu guards it.
type queue struct {
	waiting, started int
	last             time.Time // when an order was published into an empty queue, or started
}

// shortage is a class of orders that no worker starts.
type shortage struct {
	since, reported time.Time
	text            string
}

// watchWorkers reports orders that no worker can execute, and ends them after a while.
func (r *run) watchWorkers() {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	short := map[string]*shortage{}
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		stuck := r.stuck()
		for class := range short {
			if !slices.Contains(stuck, class) {
				delete(short, class)
			}
		}
		if len(stuck) == 0 {
			continue
		}
		cards, err := Cards[WorkerCard](r.ctx, r.place.Workers, WorkerKey(""))
		if err != nil {
			continue // the connection reports it
		}
		for _, class := range stuck {
			r.checkWorkers(class, cards, short)
		}
	}
}

// stuck returns the classes with waiting orders of which none has started for some time.
func (r *run) stuck() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var classes []string
	for class, q := range r.queues {
		if q.waiting > 0 && q.started == 0 && time.Since(q.last) > idle {
			classes = append(classes, class)
		}
	}
	slices.Sort(classes)
	return classes
}

// checkWorkers reports whether workers can execute the waiting orders of a class.
func (r *run) checkWorkers(class string, cards []WorkerCard, short map[string]*shortage) {
	key := ""
	if r.signer != nil {
		key = r.signer.Public()
	}
	var able, unable []string
	for i := range cards {
		c := &cards[i]
		if why, does := c.Does(class, key); does {
			able = append(able, c.ID)
		} else {
			unable = append(unable, c.ID+" ("+why+")")
		}
	}
	now := time.Now()
	s := short[class]
	if s == nil {
		s = &shortage{since: now}
		short[class] = s
	}
	level, message := "warning", ""
	if len(able) > 0 {
		s.since = now
		level, message = "info", r.waitingText(class)+" wait for "+named(able)+", which can execute them"
	} else {
		message = "no worker can execute " + r.waitingText(class) + ": "
		if len(unable) > 0 {
			message += named(unable)
		} else {
			message += "no worker is connected; start one with waza worker --fleet " + r.address.String()
		}
	}
	if message != s.text || now.Sub(s.reported) > remindPause {
		s.text, s.reported = message, now
		r.spec.Logf(level, "%s", message)
	}
	if now.Sub(s.since) > r.address.Wait {
		r.fail(class, fmt.Errorf("no worker could execute the trial for %v: %s", r.address.Wait, message))
	}
}

// waitingText describes the trials of a class, and what they need.
func (r *run) waitingText(class string) string {
	var tasks []string
	var needs []record.Need
	for i, c := range r.classes {
		if c == class {
			tasks = append(tasks, r.spec.Orders[i].TaskID)
			_, needs = classOf(r.spec.Orders[i], r.address.Labels)
		}
	}
	what := "the trials of " + text.Count(len(tasks), "task", "tasks") + " (" + named(tasks) + ")"
	if len(needs) > 0 {
		list := make([]string, len(needs))
		for i, n := range needs {
			list[i] = n.String()
		}
		what += ", which need " + strings.Join(list, " and ")
	}
	return what
}

// named joins the first few names.
func named(list []string) string {
	if more := len(list) - maxNamed; more > 0 {
		return strings.Join(list[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

// fail ends the orders of a class that no worker has started.
func (r *run) fail(class string, why error) {
	r.mu.Lock()
	var list []*order
	for _, w := range r.orders {
		if w.class == class && !w.running {
			list = append(list, w)
		}
	}
	r.mu.Unlock()
	for _, w := range list {
		if r.drop(w) {
			w.done <- &arrival{why: executor.Permanent(why)}
		}
	}
}
