package main

import (
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/eval/text"
	"waza/runner"
	"waza/runner/report"
)

func (p *program) reviewCommand() *cli.Command {
	const which, answer, out = "Which questions", "The answer", "What is printed"
	return &cli.Command{
		Name: "review", Category: groupRuns,
		Usage:     "give the scores that runs wait for",
		ArgsUsage: "[RUN]",
		Description: `Graders of type human leave the score to a person. On a terminal, waza review
shows what there is to judge, one trial after the other, and asks for a score:
0 to 1, y or n, 4/5, 80%. Each answer is recorded before the next question, and
Ctrl-C loses none. Without RUN it is the newest run that waits; latest is the
newest of all.

Where there is no terminal, or with --score, the answer is that of the flags.
An answer may be given again: the last one counts.

Examples:
  waza review
  waza review RUN --all --task poem --trial 2
  waza review RUN --task poem --trial 2 --score 4/5 --comment 'too long'
  waza review RUN --list --json

Exit codes: of questions on a terminal those of waza run, for the run as it
stands then; else 0 when the answer is recorded.
` + exitCodes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "task", Aliases: []string{"t"}, Category: which, Usage: "only the task `ID`", DefaultText: "all"},
			&cli.IntFlag{Name: "trial", Category: which, Usage: "only the trial of number `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "grader", Category: which, Usage: "only the grader `NAME`", DefaultText: "all"},
			&cli.BoolFlag{Name: "all", Category: which, Usage: "also what has its score, and trials that failed anyway or are errors"},
			&cli.StringFlag{Name: "score", Category: answer, Usage: "give the trial this `SCORE`: 0 to 1, y or n, 4/5, 80%", DefaultText: "asks"},
			&cli.StringFlag{Name: "comment", Category: answer, Usage: "say `WHY`", DefaultText: "none"},
			&cli.StringFlag{Name: "reviewer", Category: answer, Usage: "who gives the score, a `NAME`", DefaultText: "the user's"},
			&cli.BoolFlag{Name: "list", Category: out, Usage: "list what is asked, and ask nothing"},
			&cli.BoolFlag{Name: "json", Category: out, Usage: "print the list, or what became of the trial, as JSON"},
		},
		Action: p.review,
	}
}

// reviewOptions are the flags of waza review.
type reviewOptions struct {
	run      string // empty for the newest that waits
	task     string
	trial    int // 0 for all
	grader   string
	all      bool
	reviewer string
	json     bool
}

func (p *program) review(c *cli.Context) error {
	o := reviewOptions{
		run: c.Args().First(), task: c.String("task"), trial: c.Int("trial"), grader: c.String("grader"),
		all: c.Bool("all"), reviewer: c.String("reviewer"), json: c.Bool("json"),
	}
	if err := most(c, 1); err != nil {
		return err
	}
	if c.IsSet("trial") && o.trial < 1 {
		return usage("trials are counted from 1", "--trial: %d is not a number from 1 on", o.trial)
	}
	if !c.IsSet("reviewer") {
		o.reviewer = userName()
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	if o.run != "" {
		h, err := findRun(rn, o.run)
		if err != nil {
			return err
		}
		o.run = h.ID()
	}
	switch {
	case c.IsSet("score") && c.Bool("list"):
		return usage("one after the other", "--score and --list do not go together")
	case c.IsSet("score"):
		return p.giveScore(rn, o, c.String("score"), c.String("comment"))
	case c.IsSet("comment"):
		return usage("give the score, too: --score "+scoreForms, "--comment says why a score is given")
	case c.Bool("list"):
		return p.listQuestions(rn, o)
	case o.json:
		return usage("--list --json lists what is asked", "--json goes with --list or --score")
	case inputTerminal(p.stdin) == nil || terminalOf(p.stderr) == nil:
		return usage(missingOf(o), "there is no terminal to ask on, and no --score")
	}
	return p.askPerson(rn, o)
}

// userName is who calls waza; empty when nobody knows.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// missingOf tells what a call without a terminal lacks.
func missingOf(o reviewOptions) string {
	var missing []string
	for _, x := range []struct {
		given bool
		what  string
	}{{o.run != "", "RUN"}, {o.task != "", "--task ID"}, {o.trial > 0, "--trial N"}, {false, "--score X"}} {
		if !x.given {
			missing = append(missing, x.what)
		}
	}
	return "give " + strings.Join(missing, ", ") + "; waza review RUN --list tells what is asked"
}

// giveScore records the answer that the flags hold.
func (p *program) giveScore(rn *runner.Runner, o reviewOptions, text, comment string) error {
	if o.run == "" || o.task == "" || o.trial == 0 {
		hint := strings.ReplaceAll(missingOf(o), ", --score X", "")
		return usage(hint, "--score is for one trial of a run")
	}
	score, err := parseScore(text)
	if err != nil {
		return usage("", "--score: %w", err)
	}
	done, err := rn.Review(p.ctx, o.run, runner.Review{
		TaskID: o.task, Trial: o.trial, Grader: o.grader, Score: score, Comment: comment, Reviewer: o.reviewer,
	})
	if err != nil {
		return err
	}
	if o.json {
		return p.printJSON(done)
	}
	fmt.Fprintf(p.stdout, "%s, trial %d, %s: %s recorded; the trial is %s\n%s\n",
		report.Clean(done.TaskID), done.Trial, report.Clean(done.Grader), shortScore(score), spoken(done.Verdict), stillPending(done.Pending))
	return nil
}

// shortScore gives a score as people say it, but never as one that it is not.
func shortScore(score float64) string { return fmt.Sprintf("%.4g", score) }

// spoken gives a verdict in words.
func spoken(v runner.Verdict) string {
	switch v {
	case runner.NeedsReview:
		return "still to review"
	case runner.Errored:
		return "in error"
	case runner.TimedOut:
		return "timed out"
	}
	return string(v)
}

func stillPending(n int) string {
	if n == 0 {
		return "nothing else waits for review"
	}
	return text.Count(n, "score is", "scores are") + " still waited for"
}

// questions are those of a run that the flags ask for.
func (o reviewOptions) questions(rn *runner.Runner) ([]runner.Question, error) {
	list, err := rn.Questions(o.run)
	var out []runner.Question
	for _, q := range list {
		if (o.all || q.Pending) && (o.task == "" || o.task == q.TaskID) && (o.trial == 0 || o.trial == q.Trial) && (o.grader == "" || o.grader == q.Grader) {
			out = append(out, q)
		}
	}
	return out, err
}

// findRun sets the run when none is named. There may be none that waits.
func (o *reviewOptions) findRun(rn *runner.Runner) error {
	if o.run != "" {
		return nil
	}
	var err error
	o.run, err = rn.NewestPending()
	return err
}

func (p *program) listQuestions(rn *runner.Runner, o reviewOptions) error {
	if err := o.findRun(rn); err != nil {
		return err
	}
	var list []runner.Question
	if o.run != "" {
		var err error
		if list, err = o.questions(rn); err != nil {
			return err
		}
	}
	if o.json {
		return p.printJSON(map[string]any{"runId": o.run, "pending": empty(list)})
	}
	if len(list) == 0 {
		fmt.Fprintf(p.stderr, "waza: %s\n", nothingWaits(o))
		return nil
	}
	rows := [][]string{{"Task", "Trial", "Grader", "Verdict", "Score", "Asked"}}
	for _, q := range list {
		given, asked := "–", q.Instructions
		if asked == "" && q.Calibrates != "" {
			asked = "for comparison with " + q.Calibrates
		}
		if q.Score != nil {
			given = shortScore(*q.Score)
		}
		rows = append(rows, []string{q.TaskID, fmt.Sprint(q.Trial), q.Grader, string(q.Verdict), given, report.Clip(report.Clean(asked), 60)})
	}
	if err := report.Table(p.stdout, rows, p.reportOptions(p.stdout)); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "\nwaza review %s\n", report.Clean(o.run))
	return nil
}

func nothingWaits(o reviewOptions) string {
	switch {
	case o.run == "":
		return "no run waits for review"
	case o.task != "" || o.trial > 0 || o.grader != "":
		return fmt.Sprintf("nothing that is asked for waits for review in run %s (--all shows what has its score)", o.run)
	}
	return fmt.Sprintf("nothing waits for review in run %s (--all shows what has its score)", o.run)
}
