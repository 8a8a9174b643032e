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

// shortage is a class of orders that no worker starts.
type shortage struct {
	since, reported time.Time
	text            string
}

// lookout looks for workers that can execute the waiting orders of a run. It owns the goroutine that
// does so, and what it has reported.
type lookout struct {
	*scope
	book  *book
	short map[string]*shortage // by class
}

// watch reports orders that no worker can execute, and ends them after a while.
func (l *lookout) watch() {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	l.short = map[string]*shortage{}
	for {
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
		stuck := l.book.stuck()
		for class := range l.short {
			if !slices.Contains(stuck, class) {
				delete(l.short, class)
			}
		}
		if len(stuck) == 0 {
			continue
		}
		cards, err := Cards[WorkerCard](l.ctx, l.place.Workers, WorkerKey(""))
		if err != nil {
			continue // the connection reports it
		}
		for _, class := range stuck {
			l.check(class, cards)
		}
	}
}

// check reports whether workers can execute the waiting orders of a class.
func (l *lookout) check(class string, cards []WorkerCard) {
	key := ""
	if l.signer != nil {
		key = l.signer.Public()
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
	s := l.short[class]
	if s == nil {
		s = &shortage{since: now}
		l.short[class] = s
	}
	level, message := "warning", ""
	if len(able) > 0 {
		s.since = now
		level, message = "info", l.describe(class)+" wait for "+named(able)+", which can execute them"
	} else {
		message = "no worker can execute " + l.describe(class) + ": "
		if len(unable) > 0 {
			message += named(unable)
		} else {
			message += "no worker is connected; start one with waza worker --fleet " + l.address.String()
		}
	}
	if message != s.text || now.Sub(s.reported) > remindPause {
		s.text, s.reported = message, now
		l.spec.Logf(level, "%s", message)
	}
	if now.Sub(s.since) > l.address.Wait {
		why := executor.Permanent(fmt.Errorf("no worker could execute the trial for %v: %s", l.address.Wait, message))
		for _, w := range l.book.waiting(class) {
			w.fail(why)
		}
	}
}

// describe describes the trials of a class, and what they need.
func (l *lookout) describe(class string) string {
	var tasks []string
	var needs []record.Need
	for i, c := range l.classes {
		if c == class {
			tasks = append(tasks, l.spec.Orders[i].TaskID)
			_, needs = classOf(l.spec.Orders[i], l.address.Labels)
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
