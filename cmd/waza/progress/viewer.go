// Package progress shows an active run: as a block that is redrawn in place on a terminal, as
// lines elsewhere. Fill in a [Viewer] and call Show.
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

// Viewer shows an active run of this process or of another.
type Viewer struct {
	// Stdout gets the events as JSON if they are asked for; Stderr gets the display.
	Stdout *output.Stdout
	Stderr io.Writer
	// Now returns the current time.
	Now func() time.Time
	// Leave ends Show at once when it is closed, so that a blocked terminal, for example, does
	// not delay the exit. It can be nil.
	Leave <-chan struct{}
	// Steps receives the steps of interrupts; it can be nil.
	Steps <-chan int
	// Failed is called when the events cannot be read, or when the reader of the requested
	// output is gone. It can be nil.
	Failed func()

	Verbose bool
	Events  bool  // print them to stdout, one line of JSON each
	From    int64 // number of the first event to show; below 1 all
	// Earlier are the results that tasks have from before the event From, by index of the task;
	// it can be nil.
	Earlier []*record.Task
}

// ErrLeft is the error for a run that is not shown to its end because of Leave.
var ErrLeft = errors.New("left before the end")

// leaveTime limits the time that a display can take to end after Leave is closed.
const leaveTime = time.Second

// Show shows a run until it or ctx ends. The error is [ErrLeft], or the reason why the events
// cannot be read.
//
// One goroutine reads the events, another one prints them. They delay neither the run nor Leave.
func (v *Viewer) Show(ctx context.Context, h record.Handle) error {
	events := make(chan []*record.Event)
	gone := make(chan struct{})
	defer close(gone)
	var err error // the reader's error, valid once events is closed
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

// read passes events on until they or ctx end, or gone is closed.
func (v *Viewer) read(ctx context.Context, h record.Handle, events chan<- []*record.Event, gone <-chan struct{}) error {
	subscribe := h.SubscribeHeads
	if v.Events {
		subscribe = h.Subscribe // because they are printed whole
	}
	sub := subscribe(v.From)
	for {
		batch, err := sub.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ErrLeft
		case err != nil:
			v.fail()
			return fmt.Errorf("cannot read the run's events: %w", err)
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

// redrawInterval is the shortest time between updates of the display.
const redrawInterval = 100 * time.Millisecond

// print passes events on to the display and, if asked for, stdout.
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

// Counts returns a line with the number of trials or tasks of each verdict.
func Counts(c record.Counts, one, many string) string {
	return countsLine(c, one, many).text(false)
}
