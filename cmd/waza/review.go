package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/review"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner"
	"waza/runner/regrade"
	"waza/runner/report"
)

func (e *env) reviewCommand() *cli.Command {
	const which, answer, out = "Questions", "Answer", "Output"
	return &cli.Command{
		Name: "review", Category: help.Runs,
		Usage:     "give the scores that runs wait for",
		ArgsUsage: "[RUN]",
		Description: `Graders of type human leave the score to a person. On a terminal, waza review
shows one trial after the other and asks for a score: 0 to 1, y or n, 4/5, 80%.
It records each answer before the next question, so Ctrl-C loses none. Without RUN,
it reviews the newest run of this project that waits; latest is the newest of all its
runs.

Without a terminal, or with --score, waza takes the answer from the flags. You can
answer again: the last answer counts.

Examples:
  waza review
  waza review RUN --all --task poem --trial 2
  waza review RUN --task poem --trial 2 --score 4/5 --comment 'too long'
  waza review RUN --list --json

Exit codes: after questions on a terminal those of waza run, for the run's new
results; otherwise 0 when the answer is recorded.
` + exit.Codes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "task", Aliases: []string{"t"}, Category: which, Usage: "only the task `ID`", DefaultText: "all"},
			&cli.IntFlag{Name: "trial", Category: which, Usage: "only the trial of number `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "grader", Category: which, Usage: "only the grader `NAME`", DefaultText: "all"},
			&cli.BoolFlag{Name: "all", Category: which, Usage: "include questions that are answered, and trials that failed or had an error anyway"},
			&cli.StringFlag{Name: "score", Category: answer, Usage: "give the trial this `SCORE`: 0 to 1, y or n, 4/5, 80%", DefaultText: "asks"},
			&cli.StringFlag{Name: "comment", Category: answer, Usage: "say `WHY`", DefaultText: "none"},
			&cli.StringFlag{Name: "reviewer", Category: answer, Usage: "record `NAME` as the reviewer", DefaultText: "the user's"},
			&cli.BoolFlag{Name: "list", Category: out, Usage: "list the questions without asking them"},
			&cli.BoolFlag{Name: "json", Category: out, Usage: "print the list, or the trial's new result, as JSON"},
		},
		Action: e.reviewRun,
	}
}

func (e *env) reviewRun(c *cli.Context) error {
	o := review.Options{
		Run: c.Args().First(), Task: c.String("task"), Trial: c.Int("trial"), Grader: c.String("grader"),
		All: c.Bool("all"), Reviewer: c.String("reviewer"), JSON: c.Bool("json"),
	}
	if err := flags.AtMost(c, 1); err != nil {
		return err
	}
	if c.IsSet("trial") && o.Trial < 1 {
		return exit.Usagef("trials are numbered from 1", "--trial must be at least 1, got %d", o.Trial)
	}
	if !c.IsSet("reviewer") {
		o.Reviewer = userName()
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	if o.Run != "" {
		h, err := findRun(rn, o.Run)
		if err != nil {
			return err
		}
		o.Run = h.ID()
	}
	switch {
	case c.IsSet("score") && c.Bool("list"):
		return exit.Usagef("list the questions first, then answer with --score", "--score and --list cannot be combined")
	case c.IsSet("score"):
		return e.giveScore(c.Context, rn, o, c.String("score"), c.String("comment"))
	case c.IsSet("comment"):
		return exit.Usagef("add --score "+review.ScoreForms, "--comment requires --score")
	case c.Bool("list"):
		return e.listQuestions(rn, o)
	case o.JSON:
		return exit.Usagef("waza review --list --json lists the questions", "--json requires --list or --score")
	case terminal.Input(e.stdin) == nil || terminal.Of(e.stderr) == nil:
		return exit.Usagef(missingOf(o), "--score is required without a terminal")
	}
	return review.Ask(c.Context, rn, o, e.stdin, e.stdout, e.stderr)
}

// userName returns the name of the user, empty when it cannot be found.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// missingOf lists what a call without a terminal lacks.
func missingOf(o review.Options) string {
	var missing []string
	for _, x := range []struct {
		given bool
		what  string
	}{{o.Run != "", "RUN"}, {o.Task != "", "--task ID"}, {o.Trial > 0, "--trial N"}, {false, "--score X"}} {
		if !x.given {
			missing = append(missing, x.what)
		}
	}
	return "give " + strings.Join(missing, ", ") + "; waza review RUN --list lists the questions"
}

// giveScore records the answer that the flags hold.
func (e *env) giveScore(ctx context.Context, rn *runner.Runner, o review.Options, text, comment string) error {
	if o.Run == "" || o.Task == "" || o.Trial == 0 {
		hint := strings.ReplaceAll(missingOf(o), ", --score X", "")
		return exit.Usagef(hint, "--score requires one trial of a run")
	}
	score, err := review.ParseScore(text)
	if err != nil {
		return exit.Usagef("", "--score: %w", err)
	}
	if err := e.warnReviewed(rn, o.Run); err != nil {
		return err
	}
	done, err := rn.Amender().Review(ctx, o.Run, regrade.Review{
		TaskID: o.Task, Trial: o.Trial, Grader: o.Grader, Score: score, Comment: comment, Reviewer: o.Reviewer,
	})
	if err != nil {
		return err
	}
	if o.JSON {
		return e.stdout.JSON(done)
	}
	fmt.Fprintf(e.stdout, "%s, trial %d, %s: %s recorded; the trial is %s\n%s\n",
		report.Clean(done.TaskID), done.Trial, report.Clean(done.Grader), review.ShortScore(score),
		review.VerdictWords(done.Verdict), stillPending(done.Pending))
	return nil
}

func stillPending(n int) string {
	if n == 0 {
		return "nothing else waits for review"
	}
	return text.Count(n, "score is", "scores are") + " still waited for"
}

// warnReviewed reports that the record of a run is damaged.
func (e *env) warnReviewed(rn *runner.Runner, id string) error {
	h, err := rn.Catalog().Run(id)
	if err == nil {
		_, err = e.warnDamageOf(h)
	}
	return err
}

func (e *env) listQuestions(rn *runner.Runner, o review.Options) error {
	if err := o.FindRun(rn); err != nil {
		return err
	}
	var list []regrade.Question
	if o.Run != "" {
		if err := e.warnReviewed(rn, o.Run); err != nil {
			return err
		}
		var err error
		if list, err = o.Questions(rn); err != nil {
			return err
		}
	}
	if o.JSON {
		return e.stdout.JSON(map[string]any{"runId": o.Run, "pending": output.NonNil(list)})
	}
	if len(list) == 0 {
		fmt.Fprintf(e.stderr, "waza: %s\n", review.NothingWaits(o))
		return nil
	}
	rows := [][]string{{"Task", "Trial", "Grader", "Verdict", "Score", "Asked"}}
	for _, q := range list {
		given, asked := "–", cmp.Or(q.Instructions, strings.Join(q.Criteria, "; "))
		if asked == "" && q.Calibrates != "" {
			asked = "for comparison with " + q.Calibrates
		}
		if q.Score != nil {
			given = review.ShortScore(*q.Score)
		}
		rows = append(rows, []string{q.TaskID, fmt.Sprint(q.Trial), q.Grader, string(q.Verdict), given, report.Clip(report.Clean(asked), 60)})
	}
	if err := report.Table(e.stdout, rows, terminal.Options(e.stdout)); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "\nwaza review %s\n", report.Clean(o.Run))
	return nil
}
