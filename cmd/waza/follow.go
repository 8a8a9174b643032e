package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"waza/runner"
	"waza/runner/report"
)

// follow shows a run while it goes on and gathers its events in rep. It returns
// false when it was left before its end.
//
// Two goroutines do it: one reads the events, the other prints. Neither holds up
// the run; and that the printing one may be stuck, at a terminal that is halted
// say, keeps nobody from leaving.
func (s *session) follow(run *runner.Run, rep *report.Report) bool {
	s.stop.begin(run)
	defer s.stop.end()
	events := make(chan []*runner.Event)
	go s.read(run, events)
	d := s.newDisplay(rep)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.show(run, rep, d, events)
	}()
	select {
	case <-done:
		return true
	case <-s.stop.gone:
		d.abandon()
		return false
	}
}

func (s *session) read(run *runner.Run, events chan<- []*runner.Event) {
	defer close(events)
	sub := run.Subscribe(1)
	for {
		batch, err := sub.Next(s.ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				run.Cancel()
				fmt.Fprintf(s.stderr, "waza: the run's events cannot be read: %s\n", clean(err.Error()))
			}
			return
		}
		events <- batch
	}
}

// redrawInterval is how often the display is brought up to date, at most.
const redrawInterval = 100 * time.Millisecond

// show hands events on to the report, the display and, if asked for, stdout.
func (s *session) show(run *runner.Run, rep *report.Report, d display, events <-chan []*runner.Event) {
	defer d.close()
	tick := time.NewTicker(redrawInterval)
	defer tick.Stop()
	resized, stop := notifyResize()
	defer stop()
	for {
		select {
		case batch, more := <-events:
			if !more {
				return
			}
			for _, e := range batch {
				rep.Add(e)
				d.event(e)
				if s.options.events && s.printLine(runEvent{run.ID(), e}) != nil {
					run.Cancel() // nobody reads what was asked for
				}
			}
		case note := <-s.stop.notes:
			d.note(note)
		case <-tick.C:
			d.draw(time.Now())
		case <-resized:
			d.draw(time.Now())
		}
	}
}

// runEvent is an event as --events prints it.
type runEvent struct {
	RunID string `json:"runId"`
	*runner.Event
}
