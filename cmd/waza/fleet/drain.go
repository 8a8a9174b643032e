package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/eval/text"
	"waza/runner/fleet"
	"waza/runner/fleet/survey"
	"waza/runner/pause"
)

// drained is a worker in the output of waza fleet drain --json.
type drained struct {
	Worker string `json:"worker"`
	// Done is the number of trials it has done, as last seen.
	Done int64 `json:"done"`
	// Gone reports whether it has ended.
	Gone bool `json:"gone"`
	// Error is the reason why the worker did not get the request.
	Error string `json:"error,omitempty"`
}

// drain runs waza fleet drain.
func (c *call) drain() error {
	switch names := c.Args().Slice(); {
	case len(names) == 0 && !c.Bool("all"):
		return exit.Usagef("--all drains all workers of the team", "name the workers to drain")
	case len(names) > 0 && c.Bool("all"):
		return exit.Usagef("omit one of them", "--all cannot be combined with names of workers")
	}
	s, err := c.survey()
	if err != nil {
		return err
	}
	chosen, err := chooseWorkers(s.Workers, c.Args().Slice())
	if err != nil {
		return err
	}
	list := make([]drained, len(chosen))
	for i := range chosen {
		list[i] = drained{Worker: chosen[i].ID, Done: chosen[i].Done}
		if err := c.ask(chosen[i].ID); err != nil {
			list[i].Error = err.Error()
		}
	}
	if !c.Bool("no-wait") {
		err = c.await(list)
	}
	if perr := c.tellDrained(list); perr != nil {
		return perr
	}
	if c.ctx.Err() != nil {
		return exit.With(exit.Interrupted)
	}
	if i := slices.IndexFunc(list, func(d drained) bool { return d.Error != "" && !d.Gone }); err == nil && i >= 0 {
		err = exit.New(exit.Error, fmt.Errorf("worker %s: %s", list[i].Worker, list[i].Error), "")
	}
	return err
}

// chooseWorkers returns the workers that names mean; all without names.
func chooseWorkers(all []survey.Worker, names []string) ([]survey.Worker, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []survey.Worker
	for _, name := range names {
		found := 0
		for i := range all {
			if name != "" && strings.HasPrefix(all[i].ID, name) {
				found++
				if !slices.ContainsFunc(chosen, func(w survey.Worker) bool { return w.ID == all[i].ID }) {
					chosen = append(chosen, all[i])
				}
			}
		}
		if found == 0 {
			return nil, exit.Usagef("waza fleet workers lists them", "unknown worker %s", output.Clean(fmt.Sprintf("%q", name)))
		}
	}
	return chosen, nil
}

// askTime limits how long a worker can take to confirm.
const askTime = 5 * time.Second

// ask requests that a worker drain.
func (c *call) ask(id string) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, askTime, fmt.Errorf("no answer within %v", askTime))
	defer cancel()
	_, err := c.conn.NATS().RequestWithContext(ctx, fleet.NamesOf(c.address.Team).Worker(id), []byte(fleet.DrainRequest))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		return errors.New("lost: it was killed, or is disconnected from the server")
	}
	return err
}

// lookPause is the time between two checks of ending workers.
const lookPause = 300 * time.Millisecond

// await waits until the workers have ended.
func (c *call) await(list []drained) error {
	for reported := false; ; reported = true {
		s, err := c.survey()
		if err != nil {
			return err
		}
		left, busy := 0, 0
		for i := range list {
			at := slices.IndexFunc(s.Workers, func(w survey.Worker) bool { return w.ID == list[i].Worker })
			if list[i].Gone = at < 0; list[i].Gone {
				continue
			}
			list[i].Done = s.Workers[at].Done
			if list[i].Error == "" {
				left++
				busy += s.Workers[at].Busy
			}
		}
		if left == 0 {
			return nil
		}
		if !reported {
			fmt.Fprintf(c.Stderr, "waza: waiting for %s with %s (Ctrl-C ends only the wait)\n",
				text.Count(left, "worker", "workers"), text.Count(busy, "trial", "trials"))
		}
		if pause.For(c.ctx, lookPause) != nil {
			return nil
		}
	}
}

func (c *call) tellDrained(list []drained) error {
	if c.Bool("json") {
		return c.Stdout.JSON(map[string]any{"workers": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Stderr, "waza: the fleet has no workers")
	}
	for _, d := range list {
		what := "is draining"
		switch {
		case d.Gone:
			what = "has ended"
		case d.Error != "":
			what = d.Error
		}
		if _, err := fmt.Fprintf(c.Stdout, "%s: %s\n", output.Clean(d.Worker), output.Clean(what)); err != nil {
			return err
		}
	}
	return nil
}
