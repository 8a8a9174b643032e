package skills

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/eval"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/record"
)

func (o Options) coverageCommand() *cli.Command {
	return &cli.Command{
		Name: "coverage", Category: help.Skills, ArgsUsage: "[DIR]",
		Usage: "show which skills have suites, and gaps in those",
		Description: `A skill is fully covered when its suite has tasks and each task has at least two types
of graders, its own or the suite's, partially with any other suite. waza also lists
tasks without graders, and graders that passed in all recorded trials, because these
may be unable to fail. It reads the newest 20 runs of each suite.

Examples:
  waza coverage
  waza coverage --path plugins/a/skills --path plugins/b/skills
  waza coverage --format markdown >> "$GITHUB_STEP_SUMMARY"

Exit codes: 0, or 2 without skills.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{
				Name: "path", Usage: "look for skills below `DIR`; repeatable",
				DefaultText: "the directory, or paths.skills of the project",
			},
			&cli.StringFlag{
				Name: "format", Aliases: []string{"f"}, Usage: "print as `FORMAT`: text, markdown or json",
				Value: "text", DefaultText: "text",
			},
			flags.JSON("the same as --format json"),
		},
		Action: flags.AtMost(1, o.coverage),
	}
}

// coverage is the output of waza coverage --json.
type coverage struct {
	TotalSkills int       `json:"total_skills"`
	Covered     int       `json:"covered"`
	Partial     int       `json:"partial"`
	Uncovered   int       `json:"uncovered"`
	CoveragePct float64   `json:"coverage_pct"` // share of fully covered skills, 0 to 100
	Skills      []covered `json:"skills"`
}

// covered is a skill and its suite.
type covered struct {
	Skill    string   `json:"skill"`
	Tasks    int      `json:"tasks"`
	Graders  []string `json:"graders"` // types of the graders of the suite and of its tasks
	Coverage string   `json:"coverage"`

	Path  string `json:"path"`
	Suite string `json:"suite,omitempty"`
	// Problem is the reason why the suite could not be read.
	Problem string `json:"problem,omitempty"`
	// TasksWithoutGraders are ids.
	TasksWithoutGraders []string `json:"tasks_without_graders"`
	// NeverFailed are the names of graders that passed in all recorded trials. Runs is the
	// number of these runs.
	NeverFailed []string `json:"graders_never_failed"`
	Runs        int      `json:"runs"`
}

// The degrees of coverage of a skill.
const (
	full    = "✅ Full"
	partial = "⚠️ Partial"
	none    = "❌ None"
)

// mostRuns limits the runs of a suite that are read.
const mostRuns = 20

func (o Options) coverage(c *cli.Context) error {
	format, err := flags.Format(c, "text", "markdown", "json")
	if err != nil {
		return err
	}
	here, err := o.here()
	if err != nil {
		return err
	}
	var args []string
	if c.NArg() > 0 {
		args = []string{c.Args().First()}
	}
	if paths := c.StringSlice("path"); len(paths) > 0 {
		args = paths
	}
	dirs, err := here.skills(args)
	if err != nil {
		return err
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	all := coverage{TotalSkills: len(dirs)}
	for _, dir := range dirs {
		s, err := here.cover(ctx, rn, dir)
		switch {
		case ctx.Err() != nil:
			return exit.With(exit.Interrupted)
		case err != nil:
			return err
		}
		switch s.Coverage {
		case full:
			all.Covered++
		case partial:
			all.Partial++
		default:
			all.Uncovered++
		}
		all.Skills = append(all.Skills, s)
	}
	all.CoveragePct = 100 * float64(all.Covered) / float64(all.TotalSkills)
	switch format {
	case "json":
		return o.Stdout.JSON(all)
	case "markdown":
		return o.coverageMarkdown(&all)
	}
	return o.coverageText(&all)
}

// cover determines the coverage of a skill by its suite.
func (p place) cover(ctx context.Context, rn *state.Opened, dir string) (covered, error) {
	s, err := skill.Read(dir)
	if err != nil {
		return covered{}, exit.New(exit.Usage, err, "")
	}
	v := covered{
		Skill: s.Title(), Path: output.Path(s.File), Coverage: none, Graders: []string{},
		TasksWithoutGraders: []string{}, NeverFailed: []string{},
	}
	file := p.suites.Of(dir, v.Skill)
	if file == "" {
		return v, nil
	}
	v.Suite, v.Coverage = output.Path(file), partial
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: rn.Planner().Vocabulary()})
	switch {
	case err != nil:
		v.Problem = err.Error()
		return v, nil
	case suite == nil || ds.HasErrors():
		v.Problem = "waza validate " + v.Suite + " reports errors"
	}
	if suite == nil {
		return v, nil
	}
	v.Tasks = len(suite.Tasks)
	names, twice := map[string]bool{}, 0
	for _, g := range suite.Graders {
		v.addType(g.Type)
	}
	for _, t := range suite.Tasks {
		if len(t.Effective) == 0 {
			v.TasksWithoutGraders = append(v.TasksWithoutGraders, t.ID)
		}
		types := map[string]bool{}
		for _, g := range t.Effective {
			names[g.Name], types[g.Type] = true, true
			v.addType(g.Type)
		}
		if len(types) >= 2 {
			twice++
		}
	}
	if v.Tasks > 0 && twice == v.Tasks {
		v.Coverage = full
	}
	v.Runs, err = neverFailed(ctx, rn.Catalog(), file, names)
	for name := range names {
		v.NeverFailed = append(v.NeverFailed, name)
	}
	if v.Runs == 0 {
		v.NeverFailed = []string{}
	}
	slices.Sort(v.NeverFailed)
	return v, err
}

func (v *covered) addType(name string) {
	if !slices.Contains(v.Graders, name) {
		v.Graders = append(v.Graders, name)
	}
}

// neverFailed removes the names of graders that failed a trial of the newest runs of a suite or
// graded none of them, and returns the number of runs.
func neverFailed(ctx context.Context, runs *catalog.Catalog, suite string, names map[string]bool) (int, error) {
	infos, err := runs.ListBy(catalog.Filter{Path: suite, Limit: mostRuns})
	if err != nil {
		return 0, err
	}
	graded := map[string]bool{}
	failed := map[string]bool{}
	n := 0
	for _, info := range infos {
		h, err := runs.Run(info.RunID)
		if err != nil {
			continue // it was removed, or cannot be read
		}
		err = h.Trials(func(_ int, t *record.Trial) error {
			for _, g := range t.Graders {
				graded[g.Name] = graded[g.Name] || g.Error == ""
				failed[g.Name] = failed[g.Name] || g.Error == "" && !g.Passed
			}
			return context.Cause(ctx)
		})
		if ctx.Err() != nil {
			return 0, err
		}
		if err == nil {
			n++
		}
	}
	for name := range names {
		if !graded[name] || failed[name] {
			delete(names, name)
		}
	}
	return n, nil
}

func (all *coverage) header() string {
	return fmt.Sprintf("Coverage: %.1f%% (%d/%d fully covered)", all.CoveragePct, all.Covered, all.TotalSkills)
}

func (all *coverage) rows() [][]string {
	rows := [][]string{{"Skill", "Tasks", "Graders", "Coverage"}}
	for _, s := range all.Skills {
		graders := strings.Join(s.Graders, ", ")
		if graders == "" {
			graders = "-"
		}
		rows = append(rows, []string{s.Skill, fmt.Sprint(s.Tasks), graders, s.Coverage})
	}
	return rows
}

// notes lists the findings that are not in the table.
func (all *coverage) notes() (notes []string) {
	unknown := []string{}
	for _, s := range all.Skills {
		switch {
		case s.Suite == "":
			notes = append(notes, fmt.Sprintf("%s: no suite; waza new eval %s creates a suite", s.Skill, s.Skill))
			continue
		case s.Problem != "":
			notes = append(notes, fmt.Sprintf("%s: %s", s.Skill, s.Problem))
		}
		if len(s.TasksWithoutGraders) > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s without graders: %s", s.Skill,
				text.Plural(len(s.TasksWithoutGraders), "task", "tasks"), text.Names(s.TasksWithoutGraders)))
		}
		if len(s.NeverFailed) > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s that failed no trial in %s: %s", s.Skill,
				text.Plural(len(s.NeverFailed), "grader", "graders"), text.Count(s.Runs, "run", "runs"),
				text.Names(s.NeverFailed)))
		}
		if s.Runs == 0 {
			unknown = append(unknown, s.Skill)
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "no recorded runs, so graders that never fail are unknown: "+text.Names(unknown))
	}
	return notes
}

func (o Options) coverageText(all *coverage) error {
	fmt.Fprintf(o.Stdout, "%s\n\n", all.header())
	if err := o.Stdout.Table(all.rows()); err != nil {
		return err
	}
	for i, note := range all.notes() {
		if i == 0 {
			fmt.Fprintln(o.Stdout)
		}
		fmt.Fprintln(o.Stdout, output.Clean(note))
	}
	return o.Stdout.Err()
}

func (o Options) coverageMarkdown(all *coverage) error {
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ")
	fmt.Fprintf(o.Stdout, "## Skill coverage\n\n%s\n\n", all.header())
	for i, row := range all.rows() {
		for j := range row {
			row[j] = cell.Replace(output.Clean(row[j]))
		}
		fmt.Fprintf(o.Stdout, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(o.Stdout, "|---|---|---|---|")
		}
	}
	for i, note := range all.notes() {
		if i == 0 {
			fmt.Fprintln(o.Stdout)
		}
		fmt.Fprintf(o.Stdout, "- %s\n", cell.Replace(output.Clean(note)))
	}
	return o.Stdout.Err()
}
