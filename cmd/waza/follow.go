package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/runner"
	"waza/runner/report"
)

// viewer shows a run, of this process or of another, while it goes on.
type viewer struct {
	*program
	// ctx ends the showing in good order, leave at once: a terminal that is
	// halted, say, keeps nobody from leaving. leave may be nil.
	ctx   context.Context
	leave <-chan struct{}
	// steps tells how far the run is interrupted; it may be nil.
	steps <-chan int
	// failed is called when the events cannot be read, or nobody reads what was
	// asked for; it may be nil.
	failed func()

	verbose bool
	events  bool  // print them to stdout, one line of JSON each
	from    int64 // number of the first event to show; below 1 all
}

// follow shows a run of this process and gathers its events in rep. It returns
// false when it was left before its end.
func (s *session) follow(run *runner.Run, rep *report.Report) bool {
	s.stop.begin(run)
	defer s.stop.end()
	v := &viewer{
		program: s.program, ctx: s.ctx, leave: s.stop.gone, steps: s.stop.steps, failed: run.Cancel,
		verbose: s.options.verbose, events: s.options.events, from: run.First(),
	}
	err := v.show(run, rep)
	if err != nil && !errors.Is(err, errLeft) {
		fmt.Fprintf(s.stderr, "waza: %s\n", clean(err.Error()))
	}
	return !errors.Is(err, errLeft)
}

// errLeft says that a run is not shown to its end because nobody wants to see it.
var errLeft = errors.New("left before the end")

// leaveTime is how long a display may take to come to its end when nobody wants
// to see more.
const leaveTime = time.Second

// show shows a run and gathers its events in rep. The error is [errLeft], or tells
// why the events cannot be read.
//
// Two goroutines do it: one reads the events, the other prints. Neither holds up
// the run, nor anyone who wants to leave.
func (v *viewer) show(h runner.Handle, rep *report.Report) error {
	events := make(chan []*runner.Event)
	gone := make(chan struct{})
	defer close(gone)
	var err error // the reader's until events is closed
	go func() {
		defer close(events)
		err = v.read(h, events, gone)
	}()
	d := v.newDisplay(rep)
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.print(h.ID(), rep, d, events)
	}()
	late := make(chan struct{})
	defer context.AfterFunc(v.ctx, func() { time.AfterFunc(leaveTime, func() { close(late) }) })()
	select {
	case <-done:
		return err
	case <-v.leave:
	case <-late:
	}
	d.abandon()
	return errLeft
}

// read hands events on to their end, that of v.ctx, or until gone is closed.
func (v *viewer) read(h runner.Handle, events chan<- []*runner.Event, gone <-chan struct{}) error {
	sub := h.Subscribe(v.from)
	for {
		batch, err := sub.Next(v.ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case v.ctx.Err() != nil:
			return errLeft
		case err != nil:
			v.fail()
			return fmt.Errorf("the run's events cannot be read: %w", err)
		}
		select {
		case events <- batch:
		case <-gone:
			return errLeft
		}
	}
}

func (v *viewer) fail() {
	if v.failed != nil {
		v.failed()
	}
}

// redrawInterval is how often the display is brought up to date, at most.
const redrawInterval = 100 * time.Millisecond

// print hands events on to the report, the display and, if asked for, stdout.
func (v *viewer) print(id string, rep *report.Report, d display, events <-chan []*runner.Event) {
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
				if v.events && v.printLine(runEvent{id, e}) != nil {
					v.fail()
				}
			}
		case step := <-v.steps:
			d.interrupted(step, time.Now())
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
