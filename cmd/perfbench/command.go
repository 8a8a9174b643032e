package main

import (
	"context"
	"os/exec"
	"time"
)

var commandMeasure = measure{
	title: "Trial of a program",
	rows: []row{
		{name: "trial of a program (true)", unit: "ms", target: target{most: 2.2}},
		{name: "trial of a program, processor time", unit: "ms"},
	},
	how: "A client runs trials of the executor `command` with the program `true`, one after the other. The figure is the difference " +
		"between a run of 220 and a run of 20 trials, divided by 200. The processor time includes that of `true`.",
	floor: "A Go program starts `true` and waits for it, 200 times.",
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		suite := func(trials int) string {
			return settings("command", trials, 1, "  command: ['true']") + "tasks: [{id: a, prompt: x}]\n"
		}
		return b.sequence(ctx, b.rounds(7, 1), sequence{suite: suite, few: 20, many: 220}, func() ([]float64, error) {
			u, err := b.helper(ctx, "floor-commands")
			return u.each(floorCommands).milliseconds(), err
		})
	},
}

const floorCommands = 200

// startCommands starts a command, or `true` without one, again and again.
func startCommands(command []string) error {
	if len(command) == 0 {
		command = []string{"true"}
	}
	for range floorCommands {
		if err := exec.Command(command[0], command[1:]...).Run(); err != nil {
			return err
		}
	}
	return nil
}

// A sequence is a suite of one task whose trials run one after the other.
type sequence struct {
	suite func(trials int) string
	// few and many are the trials of the two runs whose difference is measured.
	few, many int
	// after is done by the client after a run of so many trials, if it is not nil.
	after func(c *client, run string, trials int) error
}

// sequence measures a trial of a sequence. The figures are milliseconds of wall time and of processor
// time, as are the values of the floor.
func (b *bench) sequence(ctx context.Context, rounds int, s sequence, floor func() ([]float64, error)) ([]figure, error) {
	trial, err := b.trialOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return besideFloor(rounds, func() ([]float64, error) {
		u, err := trial()
		return u.milliseconds(), err
	}, floor)
}

// trialOf returns a function that measures one trial of a sequence.
func (b *bench) trialOf(ctx context.Context, s sequence) (func() (used, error), error) {
	suites := map[int]string{}
	for _, trials := range []int{s.few, s.many} {
		var err error
		if suites[trials], err = b.suite(s.suite(trials)); err != nil {
			return nil, err
		}
	}
	run := func(trials int) (used, error) {
		d, err := b.daemon(ctx)
		if err != nil {
			return used{}, err
		}
		return d.use(func() (time.Duration, error) {
			start := time.Now()
			id, err := d.startRun(suites[trials])
			if err != nil {
				return 0, err
			}
			if err := d.complete(); err != nil {
				return 0, err
			}
			if s.after != nil {
				err = s.after(d.client, id, trials)
			}
			return time.Since(start), err
		})
	}
	return func() (used, error) {
		u, err := additional(run, s.few, s.many)
		return u.each(s.many - s.few), err
	}, nil
}
