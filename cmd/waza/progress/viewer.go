// Package progress shows a run while it goes on: as a block that is redrawn in place
// on a terminal, as lines elsewhere. Fill in a [Viewer] and call Show.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/runner/record"
)

// Viewer shows a run, of this process or of another, while it goes on.
type Viewer struct {
	// Stdout gets the events as JSON, when they are asked for; Stderr the display.
	Stdout *output.Stdout
	Stderr io.Writer
	// Now is the clock.
	Now func() time.Time
	// Leave ends the showing at once: a terminal that is halted, say, keeps nobody
	// from leaving. It may be nil.
	Leave <-chan struct{}
	// Steps gets how far the run is interrupted; it may be nil.
	Steps <-chan int
	// Failed is called when the events cannot be read, or nobody reads what was
	// asked for; it may be nil.
	Failed func()

	Verbose bool
	Events  bool  // print them to stdout, one line of JSON each
	From    int64 // number of the first event to show; below 1 all
	// Earlier are the results that tasks have from before the event From, by index of
	// the task; it may be nil.
	Earlier []*record.Task
}

// ErrLeft says that a run is not shown to its end because nobody wants to see it.
var ErrLeft = errors.New("left before the end")

// leaveTime is how long a display may take to come to its end when nobody wants
// to see more.
const leaveTime = time.Second

// Show shows a run until it or ctx ends. The error is [ErrLeft], or says why the
// events cannot be read.
//
// Two goroutines do it: one reads the events, the other prints. Neither holds up
// the run, nor anyone who wants to leave.
func (v *Viewer) Show(ctx context.Context, h record.Handle) error {
	events := make(chan []*record.Event)
	gone := make(chan struct{})
	defer close(gone)
	var err error // the reader's until events is closed
	go func() {
		defer close(events)
		err = v.read(ctx, h, events, gone)
	}()
	d := v.newDisplay(h.Record())
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.print(h.ID(), d, events)
	}()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(leaveTime, func() { close(late) }) })()
	select {
	case <-done:
		return err
	case <-v.Leave:
	case <-late:
	}
	d.abandon()
	return ErrLeft
}

// read hands events on to their end, that of ctx, or until gone is closed.
func (v *Viewer) read(ctx context.Context, h record.Handle, events chan<- []*record.Event, gone <-chan struct{}) error {
	sub := h.Subscribe(v.From)
	for {
		batch, err := sub.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ErrLeft
		case err != nil:
			v.fail()
			return fmt.Errorf("the run's events cannot be read: %w", err)
		}
		select {
		case events <- batch:
		case <-gone:
			return ErrLeft
		}
	}
}

func (v *Viewer) fail() {
	if v.Failed != nil {
		v.Failed()
	}
}

// redrawInterval is how often the display is brought up to date, at most.
const redrawInterval = 100 * time.Millisecond

// print hands events on to the display and, if asked for, stdout.
func (v *Viewer) print(id string, d display, events <-chan []*record.Event) {
	defer d.close()
	tick := time.NewTicker(redrawInterval)
	defer tick.Stop()
	resized, stop := terminal.Resized()
	defer stop()
	for {
		select {
		case batch, more := <-events:
			if !more {
				return
			}
			for _, e := range batch {
				d.event(e)
				if v.Events && v.Stdout.Line(runEvent{id, e}) != nil {
					v.fail()
				}
			}
		case step := <-v.Steps:
			d.interrupted(step, v.Now())
		case <-tick.C:
			d.draw(v.Now())
		case <-resized:
			d.draw(v.Now())
		}
	}
}

// runEvent is an event as --events prints it.
type runEvent struct {
	RunID string `json:"runId"`
	*record.Event
}

// Counts says in a line how many of what it counts ended in each verdict.
func Counts(c record.Counts, one, many string) string {
	return countsLine(c, one, many).text(false)
}
