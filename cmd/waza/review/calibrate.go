package review

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/regrade"
	"waza/runner/report"
)

// calibrate draws trials of a run for the calibration of a judge, and asks about them. Without a
// terminal, it only draws.
func (o Options) calibrate(c *cli.Context, rn *state.Opened, s selection) error {
	labels := c.Int("calibrate")
	if labels < 1 {
		return exit.Usagef("50 is a good start", "--calibrate must be at least 1, got %d", labels)
	}
	for _, name := range []string{"score", "comment", "task", "trial", "all"} {
		if c.IsSet(name) {
			return exit.Usagef("draw the trials first, then answer with --score", "--calibrate and --%s cannot be combined", name)
		}
	}
	if s.JSON && !c.Bool("list") {
		return exit.Usagef("waza review --calibrate N --list --json lists the drawn trials", "--json requires --list or --score")
	}
	if s.Run == "" {
		h, err := rn.Find(catalog.LatestRun)
		if err != nil {
			return err
		}
		s.Run = h.ID()
	}
	if err := warnDamage(rn, s.Run); err != nil {
		return err
	}
	done, err := rn.Amender().Calibrate(c.Context, s.Run, regrade.Calibration{Grader: s.Grader, Labels: labels})
	if err != nil {
		return err
	}
	s.Grader, s.Drawn = done.Grader, true
	if !s.JSON {
		fmt.Fprintf(o.Stderr, "waza: %s\n", drawnText(done))
	}
	switch {
	case c.Bool("list"):
		return o.list(rn, s)
	case done.Labeled == done.Drawn:
		return nil
	case terminal.Input(o.Stdin) == nil || terminal.Of(o.Stderr) == nil:
		fmt.Fprintf(o.Stdout, "waza review %s --calibrate %d --grader %q --list\n", report.Clean(s.Run), labels, report.Clean(s.Grader))
		return nil
	}
	return o.ask(c.Context, rn, s)
}

func drawnText(d *regrade.Drawn) string {
	return fmt.Sprintf("%d of %s of grader %s drawn at random, %d of them labeled", d.Drawn, text.Count(d.Trials, "trial", "trials"),
		report.Clean(d.Grader), d.Labeled)
}
