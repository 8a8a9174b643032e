// Package sourcetest has helpers for tests of formats of results.
package sourcetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/source"
	"waza/runner/record"
)

var update = flag.Bool("update", false, "write the outlines of files")

// Outlines opens the files that a pattern matches, and compares their outlines with the files NAME.want
// beside them.
func Outlines(t *testing.T, format source.Format, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		if strings.HasSuffix(path, ".want") {
			continue
		}
		require.True(t, format.Recognizes(source.ReadHead(path)), "%s is not recognized", path)
		Outline(t, format, path, path+".want")
	}
}

// Outline opens a file, and compares its outline with another file.
func Outline(t *testing.T, format source.Format, path, want string) {
	t.Helper()
	res, err := format.Open(path)
	require.NoError(t, err)
	got := Print(t, res)
	if *update {
		require.NoError(t, os.WriteFile(want, []byte(got), 0o600))
	}
	text, err := os.ReadFile(want)
	require.NoError(t, err)
	require.Equal(t, string(text), got, "%s", path)
}

// Print returns the outline of results.
func Print(t *testing.T, res *source.Results) string {
	t.Helper()
	p := &printer{}
	rec := res.Run
	p.line("suite %q, model %q, agent %q, trials %d, created %s", rec.Suite.Name, rec.Config.Model, rec.Config.Agent, rec.Config.Trials, rec.CreatedAt.Format("2006-01-02T15:04:05Z07:00"))
	p.line("from %s, id %q, %s, %d ms", rec.Imported.Format, rec.Imported.EvalID, res.Status, res.DurationMS)
	for _, n := range res.Notes {
		p.line("note: %s", n)
	}
	at := -1
	require.NoError(t, res.Read(func(task int, trial *record.Trial) error {
		if task != at {
			at = task
			ref := &rec.Tasks[task]
			p.line("task %q %q, trials %d, groups %q", ref.ID, ref.Name, ref.Trials, ref.Groups)
		}
		p.trial(trial)
		return nil
	}))
	return p.String()
}

type printer struct{ strings.Builder }

func (p *printer) line(format string, values ...any) { fmt.Fprintf(p, format+"\n", values...) }

func (p *printer) trial(t *record.Trial) {
	score, took := "no score", fmt.Sprintf("%d ms", t.DurationMS)
	if t.Score != nil {
		score = fmt.Sprintf("score %.4g", *t.Score)
	}
	if t.Untimed {
		took = "untimed"
	}
	p.line("  trial %d: %s, %s, %s", t.TrialNum, t.Verdict, score, took)
	p.text("error", t.Error)
	p.text("prompt", t.Prompt)
	p.text("output", t.Output)
	if spent := t.Ledger(); spent != nil {
		p.usage("agent", spent.Agent)
		p.usage("judges", spent.Judges)
		p.usage("responder", spent.Responder)
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		state := fmt.Sprintf("%.4g passed=%v", g.Score, g.Passed)
		if g.NeedsReview {
			state = "waits"
		}
		if g.Optional {
			state += ", optional"
		}
		p.line("    grader %q (%s) %s, weight %g", g.Name, g.Type, state, g.Weight)
		p.text("  feedback", g.Feedback)
		p.text("  error", g.Error)
	}
	for _, e := range t.Transcript {
		if e.Tool != nil {
			p.line("    %d %s %q %s = %s, %s", e.AtMS, e.Type, e.Tool.Name, e.Tool.Arguments, e.Tool.Result, e.Tool.Status)
			continue
		}
		p.text(strings.TrimSpace(fmt.Sprintf("%d %s %s", e.AtMS, e.Type, e.Role)), e.Text)
	}
}

func (p *printer) text(name, text string) {
	if text != "" {
		p.line("    %s: %q", name, text)
	}
}

func (p *printer) usage(who string, u *record.Usage) {
	if u != nil {
		p.line("    %s: %d in, %d out, %d in total, %g USD", who, u.InputTokens, u.OutputTokens, u.Total(), u.CostUSD)
	}
}

// Fuzz checks that any file is either rejected, or all its trials exist and can be recorded.
func Fuzz(f *testing.F, format source.Format, seeds ...string) {
	f.Helper()
	for _, path := range seeds {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "results")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		format.Recognizes(source.ReadHead(path))
		res, err := format.Open(path)
		if err == nil {
			err = check(t, res)
		}
		if err != nil {
			var bad *source.Error
			require.ErrorAs(t, err, &bad)
		}
	})
}

func check(t *testing.T, res *source.Results) error {
	t.Helper()
	next, want := 0, 0
	for _, ref := range res.Run.Tasks {
		want += ref.Trials
	}
	err := res.Read(func(task int, trial *record.Trial) error {
		next++
		require.LessOrEqual(t, trial.TrialNum, res.Run.Tasks[task].Trials)
		require.True(t, trial.Verdict.Known())
		require.Equal(t, trial.Verdict.Counted(), trial.CountedScore() != nil, "a counted trial has a score")
		_, err := trial.AppendJSON(nil)
		require.NoError(t, err)
		return nil
	})
	if err == nil {
		require.Equal(t, want, next)
	}
	return err
}
