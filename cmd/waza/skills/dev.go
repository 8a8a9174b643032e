package skills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/cmd/waza/scaffold"
	"waza/cmd/waza/terminal"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/runner/readiness"
)

func (o Options) devCommand() *cli.Command {
	return &cli.Command{
		Name: "dev", Category: help.Skills, ArgsUsage: "[SKILL…]",
		Usage: "improve the description of a skill, step by step",
		Description: `With --model or --agent, waza lets the agent of the skill's suite answer the prompts of
trigger_tests.yaml, asks the model for a better description, and measures again. It shows
each change with the numbers before and after. It keeps a change only when more answers are
right and the held-out half of the prompts, which the model never sees, is not worse. The
p-value of each step comes from the test of waza compare, paired by prompt. At the end,
waza measures the final text again, because the best of several tries looks better than
it is. It stops when precision and recall reach --threshold.

Without these flags, it measures nothing. It adds the missing parts of the description, as
sentences for you to edit, until waza check shows the level --target.

It asks before it keeps a change, unless --auto is given. It saves the original below the
state directory. After Ctrl-C, the skill has the last text that was kept.

Examples:
  waza dev my-skill                                 raise the level, asking each time
  waza dev my-skill --scaffold-triggers             write first trigger tests
  waza dev my-skill --model claude-sonnet-4-5 --auto
  waza dev --all --filter low --auto --target medium

Exit codes: 0 when the target is reached, 1 when not, 2 for wrong usage, 3 when nothing
could be measured or proposed, 130 when interrupted.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "target", Usage: "without a model, stop at `LEVEL`: low, medium, medium-high or high",
				DefaultText: "dev.target of .waza.yaml, else medium-high",
			},
			&cli.Float64Flag{Name: "threshold", Usage: "with a model, stop when precision and recall reach `SHARE`", Value: 0.9, DefaultText: "0.9"},
			&cli.IntFlag{Name: "max-iterations", Usage: "try at most `N` changes, up to 50", DefaultText: "dev.maxIterations of .waza.yaml, else 5"},
			&cli.IntFlag{Name: "trials", Usage: "get `N` answers to each prompt per measurement", Value: 3, DefaultText: "3"},
			&cli.BoolFlag{Name: "significant", Usage: "keep a change only if its p-value is at most 0.05 divided by --max-iterations"},
			&cli.BoolFlag{Name: "auto", Usage: "keep changes without asking"},
			&cli.BoolFlag{Name: "all", Usage: "work on all skills of the project, or below this directory"},
			&cli.StringFlag{Name: "filter", Usage: "work only on skills with the level `LEVEL`", DefaultText: "all levels"},
			&cli.BoolFlag{Name: "scaffold-triggers", Usage: "write trigger_tests.yaml beside the skill's suite, and exit"},
			&cli.BoolFlag{Name: "copilot", Hidden: true},
			flags.JSON("print the steps as JSON, one line per skill; requires --auto"),
		}, question.Flags()...),
		Action: o.dev,
	}
}

// developed is a skill in the output of waza dev --json.
type developed struct {
	Skill   string    `json:"skill"`
	Path    string    `json:"path"`
	Suite   string    `json:"suite,omitempty"` // with a model
	Before  quality   `json:"before"`
	After   quality   `json:"after"`
	Steps   []devStep `json:"steps"`
	Reached bool      `json:"reached"`
	// Backup is the path of the original, absent if nothing changed.
	Backup string `json:"backup,omitempty"`
	Note   string `json:"note,omitempty"`
}

// quality is the quality of a description.
type quality struct {
	Level    readiness.Level `json:"level"`
	Measured *measure        `json:"measured,omitempty"`
}

// devStep is an attempted change.
type devStep struct {
	Description string   `json:"description"`
	Diff        string   `json:"diff"`
	Before      quality  `json:"before"`
	After       quality  `json:"after"`
	P           *float64 `json:"p,omitempty"` // of a measured step: the probability that chance alone causes such a difference
	Kept        bool     `json:"kept"`
	Reason      string   `json:"reason"`
}

// developer works on one skill.
type developer struct {
	Options
	*cli.Context
	ctx      context.Context
	place    place
	answers  func() <-chan string // the lines of stdin, which is read from the first call on
	target   readiness.Level
	most     int    // limit of changes
	stateDir string // for backups
	file     string // SKILL.md
	text     []byte // as last kept
	result   developed
}

const mostIterations = 50

func (o Options) dev(c *cli.Context) error {
	if c.Bool("copilot") {
		return exit.Usagef("waza dev SKILL --agent copilot", "unknown flag --copilot; --agent copilot replaces it and also proposes changes")
	}
	here, err := o.here()
	if err != nil {
		return err
	}
	d := developer{Options: o, Context: c, place: here, answers: sync.OnceValue(func() <-chan string { return terminal.Lines(o.Stdin) })}
	if err := d.settings(); err != nil {
		return err
	}
	dirs, err := d.chosen()
	if err != nil {
		return err
	}
	if c.Bool("scaffold-triggers") {
		return d.scaffoldTriggers(dirs)
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	d.ctx = ctx
	reached := true
	for _, dir := range dirs {
		if err := d.skill(dir); err != nil {
			return finish(ctx, err)
		}
		reached = reached && d.result.Reached
		if c.Bool("json") {
			if err := o.Stdout.Line(d.result); err != nil {
				return err
			}
		}
	}
	if !reached {
		return exit.With(exit.Failed)
	}
	return nil
}

// settings reads the flags and the project's defaults for them.
func (d *developer) settings() (err error) {
	target, most := "medium-high", 5
	if p := d.place.project; p != nil {
		if p.Dev.Target != "" {
			target = p.Dev.Target
		}
		if p.Dev.MaxIterations > 0 {
			most = p.Dev.MaxIterations
		}
	}
	if d.IsSet("target") {
		target = d.String("target")
	}
	if d.target, err = readiness.ParseLevel(target); err != nil {
		return exit.Usagef("", "--target: %v", err)
	}
	if d.IsSet("max-iterations") {
		most = d.Int("max-iterations")
	}
	d.most = most
	switch t := d.Float64("threshold"); {
	case d.most < 1 || d.most > mostIterations:
		return exit.Usagef("", "--max-iterations must be between 1 and %d, got %d", mostIterations, d.most)
	case !(t > 0 && t <= 1):
		return exit.Usagef("give a share such as --threshold 0.9", "--threshold must be above 0 and at most 1, got %v", t)
	case d.Int("trials") < 1 || d.Int("trials") > 100:
		return exit.Usagef("", "--trials must be between 1 and 100, got %d", d.Int("trials"))
	case d.Bool("json") && !d.Bool("auto"):
		return exit.Usagef("waza dev SKILL --auto --json", "--json requires --auto, because questions are not JSON")
	}
	rn, err := d.Runner()
	if err != nil {
		return err
	}
	d.stateDir = rn.Catalog().StateDir()
	return nil
}

// chosen returns the directories of the skills to work on.
func (d *developer) chosen() ([]string, error) {
	args := d.Args().Slice()
	if len(args) > 0 && d.Bool("all") {
		return nil, exit.Usagef("omit one of them", "--all cannot be combined with the name of a skill")
	}
	if len(args) == 0 && !d.Bool("all") {
		return nil, exit.Usagef("waza dev my-skill, or waza dev --all", "waza dev requires a skill or --all")
	}
	dirs, err := d.place.skills(args)
	if err != nil || !d.IsSet("filter") {
		return dirs, err
	}
	level, err := readiness.ParseLevel(d.String("filter"))
	if err != nil {
		return nil, exit.Usagef("", "--filter: %v", err)
	}
	var kept []string
	for _, dir := range dirs {
		s, err := skill.Read(dir)
		if err != nil {
			return nil, exit.New(exit.Usage, err, "")
		}
		if readiness.LevelOf(s) == level {
			kept = append(kept, dir)
		}
	}
	if len(kept) == 0 {
		return nil, exit.Usagef("waza check lists the levels", "no skill has the level %s", level)
	}
	return kept, nil
}

// skill improves one skill.
func (d *developer) skill(dir string) error {
	s, err := skill.Read(dir)
	if err != nil {
		return exit.New(exit.Usage, err, "")
	}
	if s.Problem != nil {
		return exit.Usagef("waza check "+output.Path(dir)+" prints the details", "%s:%d: %v", output.Path(s.File), s.ProblemLine, s.Problem)
	}
	if d.text, err = files.Read(s.File, skill.MaxBytes); err != nil {
		return err
	}
	d.file = s.File
	d.result = developed{Skill: s.Title(), Path: output.Path(s.File), Steps: []devStep{}}
	if question.Asked(d.Context) {
		return d.measured(s)
	}
	return d.byLevel(s)
}

// say prints a line for people; with --json it prints nothing.
func (d *developer) say(format string, args ...any) {
	if !d.Bool("json") {
		for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			fmt.Fprintln(d.Stdout, output.Clean(line))
		}
	}
}

// agreed asks whether to keep a change.
func (d *developer) agreed() (bool, error) {
	if d.Bool("auto") {
		return true, nil
	}
	fmt.Fprint(d.Stderr, "Keep it? [y/N] ")
	select {
	case line := <-d.answers(): // empty at the end of the input
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-d.ctx.Done():
		return false, context.Cause(d.ctx)
	}
}

// write replaces the SKILL.md, complete or not at all. The first call saves the original below
// the state directory.
func (d *developer) write(text []byte) error {
	if d.result.Backup == "" {
		dir := filepath.Join(d.stateDir, "dev")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot save the original: %w", err)
		}
		backup := filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000")+"-"+filepath.Base(filepath.Dir(d.file))+"-SKILL.md")
		if err := os.WriteFile(backup, d.text, 0o600); err != nil {
			return fmt.Errorf("cannot save the original: %w", err)
		}
		d.result.Backup = backup
		d.say("the original is saved in %s", backup)
	}
	return d.swap(d.text, text)
}

// swap replaces the SKILL.md if it still has the expected text, so that edits by others are not
// lost.
func (d *developer) swap(from, to []byte) error {
	now, err := files.Read(d.file, skill.MaxBytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, from) {
		return exit.New(exit.Error,
			fmt.Errorf("%s was changed by another program, and is not replaced", d.result.Path),
			"start again; the original is in "+d.result.Backup)
	}
	return replace(d.file, to)
}

func replace(path string, text []byte) error {
	f, err := files.Replace(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return f.Finish(err)
}

// undo prints how to restore the original.
func (d *developer) undo() {
	if d.result.Backup != "" {
		d.say("The original is saved; to undo: cp %s %s", d.result.Backup, d.result.Path)
	}
}

// byLevel adds missing parts to a description until it reaches the level.
func (d *developer) byLevel(s *skill.Skill) error {
	d.result.Before = quality{Level: readiness.LevelOf(s)}
	now := s
	for len(d.result.Steps) < d.most && readiness.LevelOf(now) < d.target {
		description, ok := canned(now)
		if !ok {
			d.say("%s: the description has more than 1024 characters; shorten it by hand", d.result.Skill)
			break
		}
		text, err := skill.WithDescription(d.text, description)
		if err != nil {
			return exit.New(exit.Error, fmt.Errorf("%s: %w", d.result.Path, err), "")
		}
		next := skill.Parse(d.file, text)
		step := devStep{
			Description: next.Description, Diff: diff(d.result.Path, d.text, text),
			Before: quality{Level: readiness.LevelOf(now)}, After: quality{Level: readiness.LevelOf(next)},
		}
		d.say("%s: step %d of %d\n%s%s → %s", d.result.Skill, len(d.result.Steps)+1, d.most, step.Diff, step.Before.Level, step.After.Level)
		if step.Kept, err = d.agreed(); err != nil {
			return err
		}
		step.Reason = "accepted"
		if !step.Kept {
			step.Reason = "declined"
		} else if err := d.write(text); err != nil {
			return err
		}
		d.result.Steps = append(d.result.Steps, step)
		if !step.Kept {
			break
		}
		d.text, now = text, next
	}
	d.result.After = quality{Level: readiness.LevelOf(now)}
	d.result.Reached = d.result.After.Level >= d.target
	d.say("%s: %s → %s (target %s)", d.result.Skill, d.result.Before.Level, d.result.After.Level, d.target)
	if len(d.result.Steps) > 0 {
		d.result.Note = "without a model, nothing was measured"
		d.say("Without a model, nothing was measured: edit the sentences, then measure with waza dev %s --model MODEL", d.result.Skill)
	}
	d.undo()
	return nil
}

// scaffoldTriggers writes trigger tests beside the suites of skills.
func (d *developer) scaffoldTriggers(dirs []string) error {
	for _, dir := range dirs {
		s, err := skill.Read(dir)
		if err != nil {
			return exit.New(exit.Usage, err, "")
		}
		name := s.Title()
		suite := d.place.suites.Of(dir, name)
		if suite == "" {
			return exit.Usagef("waza new eval "+name+" writes both files", "%s: trigger_tests.yaml requires a suite, and the skill has none", name)
		}
		file := filepath.Join(filepath.Dir(suite), "trigger_tests.yaml")
		if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
			return exit.Usagef("edit it", "%s exists", output.Path(file))
		}
		if err := replace(file, []byte(scaffold.TriggerTests(s, name))); err != nil {
			return err
		}
		if d.Bool("json") {
			err = d.Stdout.Line(map[string]string{"skill": name, "path": output.Path(file)})
		} else {
			_, err = fmt.Fprintf(d.Stdout, "wrote %s; replace the prompts with real ones of users\n", output.Clean(output.Path(file)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
