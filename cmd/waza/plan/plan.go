// Package plan implements `waza plan`, which shows the power and the cost of a comparison before it
// runs. Call [Command].
package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/tasks"
	"waza/runner/figure"
	"waza/runner/power"
	"waza/runner/report"
)

// Options connects the command to the runner and the outputs.
type Options struct {
	state.Reader
}

// Command returns waza plan.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "plan", Category: help.Suites,
		Usage:     "show the power and the cost of a comparison before it runs",
		ArgsUsage: "SUITE",
		Description: `For numbers of tasks and trials, it prints the chance to detect that one agent passes
more trials than another, and what the trials cost. There are two questions: is the
agent better on these very tasks, and is it better on tasks like these? The second one
needs more tasks, as effects differ from task to task.

Pass rates, costs and times come from recorded runs of the suite. The output states
what it assumes where no run is recorded.

Examples:
  waza plan evals/demo
  waza plan evals/demo --detect 10 --power 90%`,
		Flags: append(
			[]cli.Flag{
				&cli.Float64Flag{Name: "detect", Usage: "the gain to detect, in percentage `POINTS`", Value: 5, DefaultText: "5"},
				&cli.StringFlag{Name: "power", Usage: "the chance to detect it, from 50% to 99.9%: `SHARE`", Value: "80%", DefaultText: "80%"},
			},
			append(runflags.Tasks(), runflags.ParamFlag(""), flags.JSON("print the plan as JSON"))...),
		Action: o.plan,
	}
}

// planned is the output of `waza plan --json`.
type planned struct {
	Path string `json:"path"`
	Name string `json:"name"`
	*power.Plan
}

func (o Options) plan(c *cli.Context) error {
	q := power.Question{Detect: c.Float64("detect") / 100}
	if !(q.Detect > 0 && q.Detect < 1) {
		return exit.Usagef("--detect 5 means 5 percentage points", "--detect must be above 0 and below 100, got %v", c.Float64("detect"))
	}
	var err error
	if q.Power, err = share(c.String("power")); err != nil || !(q.Power >= 0.5 && q.Power <= 0.999) {
		return exit.Usagef("--power 80% is usual", "--power must be from 50%% to 99.9%%, got %s", c.String("power"))
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	suite, ids, err := tasks.IDs(c, o.Reader, rn)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return exit.Usagef("waza tasks lists the tasks of a suite", "%s: the suite has no tasks", suite.File)
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	q.Tasks = ids
	q.Records, err = power.Read(ctx, rn.Catalog(), []string{suite.File})
	switch {
	case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted"), "")
	case err != nil:
		return err
	}
	p, err := power.New(q)
	if err != nil {
		return exit.Usagef("add harder tasks, or detect less", "%s: %w", suite.File, err)
	}
	if c.Bool("json") {
		return o.Stdout.JSON(planned{suite.File, suite.Name, p})
	}
	return write(o.Stdout, p)
}

// share reads a share such as 80% or 0.8.
func share(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		x /= 100
	}
	return x, err
}

// write writes the plan for people.
func write(to *output.Stdout, p *power.Plan) error {
	rows := [][]string{{"Tasks", "Trials", "All trials", "These tasks", "Tasks like these", "Tokens", "Cost", "Time"}}
	for _, r := range p.Rows {
		rows = append(rows, []string{
			fmt.Sprint(r.Tasks), fmt.Sprint(r.Trials), fmt.Sprint(r.All), percent(r.These), percent(r.Like),
			known(r.Tokens, figure.Tokens), known(r.CostUSD, power.Cost), known(r.Seconds, duration),
		})
	}
	fmt.Fprintf(to, "Power to detect %s, by trials of each agent per task (5 %% level, two-sided):\n\n", power.Points(p.Detect))
	if err := to.Table(rows); err != nil {
		return err
	}
	fmt.Fprintln(to)
	for _, line := range p.Origins {
		fmt.Fprintln(to, line)
	}
	_, err := fmt.Fprintf(to, "\n%s\n", p.Advice)
	return err
}

func percent(x *float64) string {
	if x == nil {
		return "–"
	}
	return figure.Percent(*x)
}

func known(x *float64, format func(float64) string) string {
	if x == nil {
		return "unknown"
	}
	return format(*x)
}

func duration(seconds float64) string {
	return report.Duration(time.Duration(min(seconds, 1e9) * float64(time.Second)))
}
