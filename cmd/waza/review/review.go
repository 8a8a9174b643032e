// Package review implements `waza review`, which asks people for the scores that runs wait for. Call
// [Command].
package review

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
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/regrade"
	"waza/runner/report"
)

// Options connects the command to the recorded runs and the streams.
type Options struct {
	state.Reader
}

// Command returns waza review.
func Command(o Options) *cli.Command {
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

--calibrate N checks a judge. waza draws N trials of RUN at random, default: the newest
run, and asks about these without the judge's verdict. From your answers it corrects
the judge's pass rate. The same command continues later; a larger N adds trials.

Examples:
  waza review
  waza review RUN --all --task poem --trial 2
  waza review RUN --task poem --trial 2 --score 4/5 --comment 'too long'
  waza review RUN --list --json
  waza review --calibrate 50
  waza review RUN --calibrate 50 --grader tone --list

Exit codes: after questions on a terminal those of waza run, for the run's new
results; otherwise 0 when the answer is recorded.
` + exit.Codes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "task", Aliases: []string{"t"}, Category: which, Usage: "only the task `ID`", DefaultText: "all"},
			&cli.IntFlag{Name: "trial", Category: which, Usage: "only the trial of number `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "grader", Category: which, Usage: "only the grader `NAME`", DefaultText: "all"},
			&cli.BoolFlag{Name: "all", Category: which, Usage: "include questions that are answered, and trials that failed or had an error anyway"},
			&cli.IntFlag{Name: "calibrate", Category: which, Usage: "draw `N` trials at random, and ask only about these; --grader names the judge", DefaultText: "asks for what graders need"},
			&cli.StringFlag{Name: "score", Category: answer, Usage: "give the trial this `SCORE`: 0 to 1, y or n, 4/5, 80%", DefaultText: "asks"},
			&cli.StringFlag{Name: "comment", Category: answer, Usage: "say `WHY`", DefaultText: "none"},
			&cli.StringFlag{Name: "reviewer", Category: answer, Usage: "record `NAME` as the reviewer", DefaultText: "the user's"},
			&cli.BoolFlag{Name: "list", Category: out, Usage: "list the questions without asking them"},
			&cli.BoolFlag{Name: "json", Category: out, Usage: "print the list, or the trial's new result, as JSON"},
		},
		Action: flags.AtMost(1, o.review),
	}
}

func (o Options) review(c *cli.Context) error {
	s := selection{
		Run: c.Args().First(), Task: c.String("task"), Trial: c.Int("trial"), Grader: c.String("grader"),
		All: c.Bool("all"), Reviewer: c.String("reviewer"), JSON: c.Bool("json"),
	}
	if c.IsSet("trial") && s.Trial < 1 {
		return exit.Usagef("trials are numbered from 1", "--trial must be at least 1, got %d", s.Trial)
	}
	if !c.IsSet("reviewer") {
		s.Reviewer = userName()
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	if s.Run != "" {
		h, err := rn.Find(s.Run)
		if err != nil {
			return err
		}
		s.Run = h.ID()
	}
	if c.IsSet("calibrate") {
		return o.calibrate(c, rn, s)
	}
	switch {
	case c.IsSet("score") && c.Bool("list"):
		return exit.Usagef("list the questions first, then answer with --score", "--score and --list cannot be combined")
	case c.IsSet("score"):
		return o.giveScore(c.Context, rn, s, c.String("score"), c.String("comment"))
	case c.IsSet("comment"):
		return exit.Usagef("add --score "+scoreForms, "--comment requires --score")
	case c.Bool("list"):
		return o.list(rn, s)
	case s.JSON:
		return exit.Usagef("waza review --list --json lists the questions", "--json requires --list or --score")
	case terminal.Input(o.Stdin) == nil || terminal.Of(o.Stderr) == nil:
		return exit.Usagef(s.missing(), "--score is required without a terminal")
	}
	return o.ask(c.Context, rn, s)
}

// userName returns the name of the user, empty when it cannot be found.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// missing lists what a call without a terminal lacks.
func (s selection) missing() string {
	var missing []string
	for _, x := range []struct {
		given bool
		what  string
	}{{s.Run != "", "RUN"}, {s.Task != "", "--task ID"}, {s.Trial > 0, "--trial N"}, {false, "--score X"}} {
		if !x.given {
			missing = append(missing, x.what)
		}
	}
	return "give " + strings.Join(missing, ", ") + "; waza review RUN --list lists the questions"
}

// giveScore records the answer that the flags hold.
func (o Options) giveScore(ctx context.Context, rn *state.Opened, s selection, text, comment string) error {
	if s.Run == "" || s.Task == "" || s.Trial == 0 {
		hint := strings.ReplaceAll(s.missing(), ", --score X", "")
		return exit.Usagef(hint, "--score requires one trial of a run")
	}
	score, err := parseScore(text)
	if err != nil {
		return exit.Usagef("", "--score: %w", err)
	}
	if err := warnDamage(rn, s.Run); err != nil {
		return err
	}
	done, err := rn.Amender().Review(ctx, s.Run, regrade.Review{
		TaskID: s.Task, Trial: s.Trial, Grader: s.Grader, Score: score, Comment: comment, Reviewer: s.Reviewer,
	})
	if err != nil {
		return err
	}
	if s.JSON {
		return o.Stdout.JSON(done)
	}
	fmt.Fprintf(o.Stdout, "%s, trial %d, %s: %s recorded; the trial is %s\n%s\n",
		report.Clean(done.TaskID), done.Trial, report.Clean(done.Grader), shortScore(score),
		verdictWords(done.Verdict), stillPending(done.Pending))
	return nil
}

func stillPending(n int) string {
	if n == 0 {
		return "nothing else waits for review"
	}
	return text.Count(n, "score is", "scores are") + " still waited for"
}

// warnDamage reports that the record of a run is damaged.
func warnDamage(rn *state.Opened, id string) error {
	h, err := rn.Catalog().Run(id)
	if err == nil {
		_, err = rn.WarnDamage(h)
	}
	return err
}

func (o Options) list(rn *state.Opened, s selection) error {
	if err := s.findRun(rn.Runner); err != nil {
		return err
	}
	var list []regrade.Question
	if s.Run != "" {
		if err := warnDamage(rn, s.Run); err != nil {
			return err
		}
		var err error
		if list, err = s.questions(rn.Runner); err != nil {
			return err
		}
	}
	if s.JSON {
		return o.Stdout.JSON(map[string]any{"runId": s.Run, "pending": output.NonNil(list)})
	}
	if len(list) == 0 {
		fmt.Fprintf(o.Stderr, "waza: %s\n", s.nothingWaits())
		return nil
	}
	rows := [][]string{{"Task", "Trial", "Grader", "Verdict", "Score", "Asked"}}
	for _, q := range list {
		given, asked := "–", cmp.Or(q.Instructions, strings.Join(q.Criteria, "; "))
		if asked == "" && q.Calibrates != "" {
			asked = "for comparison with " + q.Calibrates
		}
		if q.Score != nil {
			given = shortScore(*q.Score)
		}
		rows = append(rows, []string{q.TaskID, fmt.Sprint(q.Trial), q.Grader, cmp.Or(string(q.Verdict), "–"), given, report.Clip(report.Clean(asked), 60)})
	}
	if err := o.Stdout.Table(rows); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "\nwaza review %s\n", report.Clean(s.Run))
	return nil
}
