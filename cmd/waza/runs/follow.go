package runs

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/progress"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/terminal"
	"waza/runner/record"
	"waza/runner/report"
)

func (o Options) followCommand() *cli.Command {
	return &cli.Command{
		Name: "follow", Usage: "show an active run of any process, and its result", ArgsUsage: "RUN",
		Description: `It shows past events first. latest means the newest run of this project. The table
goes to stdout, progress to stderr. Ctrl-C stops following; the run continues.

Examples:
  waza runs follow latest
  waza runs follow RUN --events --from 120   events after number 119

Exit codes: those of waza run, for the run's result; 130 also after Ctrl-C.
` + exit.Codes,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "events", Usage: "print the run's events, one line of JSON each, no table"},
			&cli.Int64Flag{Name: "from", Usage: "with --events: start with event number `SEQ`", DefaultText: "the first"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print all messages of the run to stderr"},
			runflags.FailOnFlag(""),
			flags.JSON("print the whole result as JSON, no table"),
		},
		Action: o.follow,
	}
}

func checkFollow(c *cli.Context) error {
	switch {
	case c.Bool("json") && c.Bool("events"):
		return exit.Usagef("waza runs show RUN --json prints the result afterwards", "--json and --events cannot be combined")
	case c.IsSet("from") && !c.Bool("events"):
		return exit.Usagef("add --events, or omit --from: the table covers all events", "--from requires --events")
	case c.Int64("from") < 0:
		return exit.Usagef("omit it for all events", "--from must be the number of an event, got %d", c.Int64("from"))
	}
	return runflags.CheckFailOn(c)
}

func (o Options) follow(c *cli.Context) error {
	if err := checkFollow(c); err != nil {
		return err
	}
	_, h, err := o.oneRun(c)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	v := &progress.Viewer{
		Stdout: o.Stdout, Stderr: o.Stderr, Now: time.Now, Verbose: c.Bool("verbose"), Events: c.Bool("events"),
		From: c.Int64("from"),
	}
	v.Failed = stop // the reader of stdout is gone
	err = v.Show(ctx, h)
	switch {
	case errors.Is(err, progress.ErrLeft) && o.Stdout.Err() != nil:
		return o.Stdout.Err()
	case errors.Is(err, progress.ErrLeft):
		return left(h)
	case err != nil:
		return err
	}
	return o.printRun(h, c.Bool("json"), c.Bool("events"), c.String("fail-on"))
}

// left returns the error for a run that waza stops following.
func left(h record.Handle) error {
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	if progress.Status != record.StatusRunning {
		return exit.New(exit.Interrupted, fmt.Errorf("run %s is over: %s", h.ID(), progress.Status),
			"waza runs show "+h.ID()+" prints its result")
	}
	return exit.New(exit.Interrupted, fmt.Errorf("run %s is still active", h.ID()),
		fmt.Sprintf("waza runs follow %s follows it again, waza runs cancel %[1]s ends it", h.ID()))
}

// printRun prints the requested output of a run of any process that is over, and returns its
// exit code.
func (o Options) printRun(h record.Handle, json, events bool, fail string) error {
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	switch {
	case json:
		err = h.WriteResult(report.JSONWriter(o.Stdout))
	case !events:
		err = rep.Write(o.Stdout, terminal.Options(o.Stdout))
	}
	if err != nil {
		return err
	}
	return exit.With(runflags.FailOn(fail, exit.OfRun(rep.Status, rep.Error, rep.Summary), rep.Summary))
}
