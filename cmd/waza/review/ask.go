package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report"
)

// Reasons to leave the questions early.
var (
	errQuit        = errors.New("quit")
	errInterrupted = errors.New("interrupted")
)

// reviewer asks one person the questions in order.
type reviewer struct {
	output.Streams
	runner   *state.Opened
	which    selection
	ctx      context.Context // ends with a signal
	answers  <-chan string   // typed lines; closed at the end of the input
	recorded int
}

// ask asks for the scores that the flags name, then prints the table.
func (o Options) ask(ctx context.Context, rn *state.Opened, s selection) error {
	if err := s.findRun(rn.Runner); err != nil {
		return err
	}
	if s.Run == "" {
		fmt.Fprintf(o.Stderr, "waza: %s\n", s.nothingWaits())
		return nil
	}
	h, err := rn.Catalog().Run(s.Run)
	if err != nil {
		return err
	}
	if progress, err := h.Progress(); err != nil {
		return err
	} else if progress.Status == record.StatusRunning {
		return &record.BusyError{RunID: s.Run, Running: true}
	}
	if _, err := rn.WarnDamage(h); err != nil {
		return err
	}
	list, err := s.questions(rn.Runner)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintf(o.Stderr, "waza: %s\n", s.nothingWaits())
		return nil
	}
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	r := &reviewer{Streams: o.Streams, runner: rn, which: s, ctx: ctx, answers: terminal.Lines(o.Stdin)}
	fmt.Fprintf(r.Stderr, "%s, run %s: %s to give; ? for help\n", output.Clean(h.Record().Suite.Name), s.Run,
		text.Count(len(list), "score", "scores"))
	err = r.all(list)
	if errors.Is(err, errInterrupted) {
		fmt.Fprintf(r.Stderr, "\nwaza: interrupted; %s\n", r.kept())
		return exit.With(exit.Interrupted)
	}
	if err != nil && !errors.Is(err, errQuit) {
		return err
	}
	return r.close(h)
}

func (r *reviewer) kept() string {
	return text.Count(r.recorded, "score is", "scores are") + " recorded"
}

func (r *reviewer) all(list []regrade.Question) error {
	for i := range list {
		if err := r.one(&list[i], fmt.Sprintf("%d of %d", i+1, len(list))); err != nil {
			return err
		}
	}
	return nil
}

// close prints the current state of the run.
func (r *reviewer) close(h record.Handle) error {
	fmt.Fprintf(r.Stderr, "\n%s\n\n", r.kept())
	h, err := r.runner.Catalog().Run(h.ID()) // reload it
	if err != nil {
		return err
	}
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	if err := rep.Write(r.Stdout, terminal.Options(r.Stdout)); err != nil {
		return err
	}
	return exit.With(exit.OfRun(rep.Status, rep.Error, rep.Summary))
}

// one asks one question until it is answered or skipped.
func (r *reviewer) one(q *regrade.Question, count string) error {
	trial, err := r.runner.Amender().Trial(r.which.Run, q.TaskID, q.Trial)
	if err != nil || trial == nil {
		return err
	}
	if g := resultOf(trial, q); q.Pending && g != nil && !g.NeedsReview {
		fmt.Fprintf(r.Stderr, "\n%s: %s was scored in the meantime: %s, by %s\n", count, where(q),
			shortScore(g.Score), report.Clean(g.Review().Reviewer))
		return nil
	}
	show := &shown{w: r.Stderr, options: terminal.Options(r.Stderr)}
	show.question(q, trial, count)
	for {
		text, err := r.ask(r.scorePrompt(q))
		if err != nil {
			return err
		}
		if path, ok := strings.CutPrefix(text, "f "); ok {
			r.file(show, trial, strings.TrimSpace(path))
			continue
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "s", "skip":
			return nil
		case "q", "quit":
			return errQuit
		case "?", "h", "help", "":
			fmt.Fprint(r.Stderr, reviewHelp)
		case "o", "output":
			show.all("Output", trial.Output)
		case "t", "transcript":
			show.transcript(trial)
		default:
			done, err := r.answer(q, text)
			if err != nil || done {
				return err
			}
		}
	}
}

const reviewHelp = `  a score   ` + scoreForms + `
  s         skip this one
  o         the whole output
  t         the whole transcript
  f PATH    a file that the trial left in its workspace
  q         quit; recorded scores stay
`

// file shows a file of the trial's workspace.
func (r *reviewer) file(show *shown, trial *record.Trial, path string) {
	b, err := r.runner.Amender().File(r.which.Run, trial, path)
	switch {
	case err != nil:
		fmt.Fprintf(r.Stderr, "  %s\n", output.Clean(err.Error()))
	case bytes.IndexByte(b, 0) >= 0:
		fmt.Fprintf(r.Stderr, "  %s: binary, %d bytes\n", report.Clean(path), len(b))
	default:
		show.all(report.Clean(path), string(b))
	}
}

// answer records an answer. It returns false when the text is no score, or when recording is
// impossible at the moment. The question is then asked again.
func (r *reviewer) answer(q *regrade.Question, text string) (done bool, err error) {
	score, err := parseScore(text)
	if err != nil {
		fmt.Fprintf(r.Stderr, "  %s\n", report.Clean(err.Error()))
		return false, nil
	}
	comment, err := r.ask("Comment (Enter for none): ")
	if err != nil {
		return false, err
	}
	res, err := r.runner.Amender().Review(context.WithoutCancel(r.ctx), r.which.Run, regrade.Review{
		TaskID: q.TaskID, Trial: q.Trial, Grader: q.Grader, Score: score, Comment: comment, Reviewer: r.which.Reviewer,
	})
	var busy *record.BusyError
	if errors.As(err, &busy) {
		fmt.Fprintf(r.Stderr, "  not recorded: %s\n", output.Clean(err.Error()))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.recorded++
	if q.Place > 0 { // the verdict of the trial can be the judge's
		fmt.Fprintf(r.Stderr, "  %s recorded\n", shortScore(score))
		return true, nil
	}
	fmt.Fprintf(r.Stderr, "  %s recorded; the trial is %s\n", shortScore(score), verdictWords(res.Verdict))
	return true, nil
}

func (r *reviewer) scorePrompt(q *regrade.Question) string {
	if q.Score != nil {
		return fmt.Sprintf("Score (%s so far, %s passes; ? for help): ", shortScore(*q.Score), shortScore(q.Threshold))
	}
	return fmt.Sprintf("Score (%s passes; ? for help): ", shortScore(q.Threshold))
}

// ask prints a prompt and waits for a line. The end of the input means to quit.
func (r *reviewer) ask(prompt string) (string, error) {
	if r.ctx.Err() != nil {
		return "", errInterrupted
	}
	fmt.Fprint(r.Stderr, prompt)
	select {
	case line, more := <-r.answers:
		if !more {
			return "", errQuit
		}
		return line, nil
	case <-r.ctx.Done():
		return "", errInterrupted
	}
}
