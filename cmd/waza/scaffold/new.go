package scaffold

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/eval"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/report"
)

// New returns waza new.
func New(o Options) *cli.Command {
	return &cli.Command{
		Name: "new", Category: help.Suites,
		Usage: "create a skill, a suite or a task",
		Description: `Without a model, it makes suites from the phrases that a skill's description lists after
USE FOR and DO NOT USE FOR. It checks new files like waza validate before writing them,
and overwrites nothing.

Examples:
  waza new skill pdf-tables
  waza new eval pdf-tables --dry-run
  waza new eval skills/pdf-tables/SKILL.md --model claude-sonnet-4-5
  waza new task from-prompt "Extract the table of a.pdf" evals/pdf-tables/tasks/extract.yaml --agent copilot`,
		Subcommands: []*cli.Command{o.newSkill(), o.newEval(), o.newTask()},
		Action: flags.Required("waza new skill NAME, waza new eval SKILL or waza new task from-prompt PROMPT FILE",
			"waza new requires skill, eval or task"),
	}
}

func (o Options) newSkill() *cli.Command {
	return &cli.Command{
		Name: "skill", Usage: "create a skill with a suite", ArgsUsage: "NAME",
		Description: `A project has .waza.yaml or the directory skills, in this directory or above. In a
project, the skill goes to skills/NAME and its suite to evals/NAME. Elsewhere both go to
NAME, with a CI workflow, .gitignore and README.md. Existing files are not changed.

Examples:
  waza new skill pdf-tables
  waza new skill pdf-tables --output-dir ~/work`,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "output-dir", Aliases: []string{"d"},
				Usage: "write to the project at `DIR`, or to DIR/NAME without a project", DefaultText: "this directory",
			},
			flags.JSON("print the items as JSON"),
		},
		Action: flags.AtMost(1, o.makeSkill),
	}
}

// made is the output of waza new --json.
type made struct {
	Dir   string    `json:"dir"`
	Items []written `json:"items"`
	Added int       `json:"added"`
}

func (o Options) makeSkill(c *cli.Context) error {
	name := c.Args().First()
	if name == "" {
		return exit.Usagef("waza new skill pdf-tables, for example", "waza new skill requires the name of the skill")
	}
	if err := checkName(name); err != nil {
		return err
	}
	from := c.String("output-dir")
	if from == "" {
		from = "."
	}
	p, root, err := o.project(from)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	s, l := o.skillFiles(name, from, p, root)
	sk := skill.Parse("", []byte(s.items[0].text))
	if have, err := skill.Read(filepath.Dir(s.path(s.items[0]))); err == nil {
		sk = have // the suite is for the existing skill
	}
	l.firstTasks(s, sk, name)
	if err := o.check(s, l); err != nil {
		return err
	}
	return o.finish(ctx, c, s, path.Join(l.dir, l.evalFile))
}

// skillFiles starts the scaffold of a skill: in a project below root, or, if root is empty, in a
// directory of its own.
func (o Options) skillFiles(name, from string, p *eval.Project, root string) (*scaffold, layout) {
	l := layoutOf(p, "")
	text := render("SKILL.md", struct{ Name, Title, Words string }{name, title(name), strings.ReplaceAll(name, "-", " ")})
	if root != "" {
		s := &scaffold{dir: root}
		skills, evals := pathsOf(p)
		s.file(path.Join(skills, name, skill.FileName), text)
		l.dir = path.Join(evals, name)
		return s, l
	}
	s := &scaffold{dir: filepath.Join(from, name)}
	s.file(skill.FileName, text)
	s.file(workflowFile, render("workflow.yml", workflow{Skills: "references", Evals: "evals", Commit: o.Commit}))
	s.file(".gitignore", render("gitignore", struct{ Results string }{"results/"}))
	s.file("README.md", render("README.md", struct{ Title string }{title(name)}))
	l.dir = "evals"
	return s, l
}

// project finds the project of a directory. It returns the settings of .waza.yaml, nil without
// one, and the root relative to from. root is empty outside of projects.
func (o Options) project(from string) (p *eval.Project, root string, err error) {
	p, ds, err := eval.FindProject(from)
	if err != nil {
		return nil, "", err
	}
	if ds.HasErrors() {
		if err := report.Diagnostics(o.Stderr, ds.Errors(), report.Options{}); err != nil {
			return nil, "", err
		}
		return nil, "", exit.Usagef("correct the file first", "%s is invalid: %s", p.File, report.DiagnosticsSummary(ds.Errors()))
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return nil, "", err
	}
	if p != nil {
		skills, evals := pathsOf(p)
		if !filepath.IsLocal(filepath.FromSlash(skills)) || !filepath.IsLocal(filepath.FromSlash(evals)) {
			return nil, "", exit.Usagef("correct the paths in the file", "%s: paths.skills and paths.evals must be inside the project", p.File)
		}
		return p, relativeTo(abs, p.Dir(), from), nil
	}
	repository := files.RepositoryRoot(abs)
	for dir := abs; ; dir = filepath.Dir(dir) {
		if files.IsDir(filepath.Join(dir, "skills")) {
			return nil, relativeTo(abs, dir, from), nil
		}
		if dir == repository || filepath.Dir(dir) == dir {
			return nil, "", nil
		}
	}
}

// relativeTo returns dir relative to the place of the call.
func relativeTo(abs, dir, from string) string {
	if rel, err := filepath.Rel(abs, dir); err == nil {
		return filepath.Join(from, rel)
	}
	return dir
}

func (o Options) newEval() *cli.Command {
	return &cli.Command{
		Name: "eval", Usage: "create a suite for a skill", ArgsUsage: "SKILL",
		Description: `SKILL is the name of a skill, its directory or its SKILL.md. waza makes the tasks and
trigger_tests.yaml from the phrases after USE FOR and DO NOT USE FOR. With --model, a
model reads the skill and proposes tasks; with --agent, an agent does. waza drops
proposals that waza validate would reject.

The suite goes to evals/NAME of the project, or to the directory evals of a skill outside
of projects. It fails if one of its files exists.

Examples:
  waza new eval pdf-tables
  waza new eval skills/pdf-tables/SKILL.md --dry-run
  waza new eval pdf-tables --model claude-sonnet-4-5
  waza new eval pdf-tables --agent copilot --count 8`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "output", Usage: "write the suite to `FILE`, its tasks beside it",
				DefaultText: "evals/NAME/eval.yaml of the project",
			},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the new files as a diff, and write nothing"},
			&cli.IntFlag{Name: "count", Usage: "ask a model or an agent for `N` tasks, 1 to 20", Value: 5, DefaultText: "5"},
			flags.JSON("print the items as JSON"),
		}, question.Flags()...),
		Action: o.makeEval,
	}
}

func (o Options) makeEval(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza new eval NAME, or the path of a SKILL.md", "waza new eval takes one skill, got %d", c.NArg())
	}
	p, root, err := o.project(".")
	if err != nil {
		return err
	}
	skills, evals := pathsOf(p)
	dir, err := skill.Find(c.Args().First(), ".", filepath.Join(root, filepath.FromSlash(skills)))
	if err != nil {
		return exit.New(exit.Usage, err, "waza new skill NAME creates a skill")
	}
	sk, err := skill.Read(dir)
	if err != nil {
		return err
	}
	name := filepath.Base(absolute(dir))
	if checkName(sk.Name) == nil {
		name = sk.Name
	}
	if err := checkName(name); err != nil {
		return err
	}
	s, l := &scaffold{dir: root}, layoutOf(p, path.Join(evals, name))
	switch {
	case c.String("output") != "":
		s.dir, l.dir, l.evalFile = filepath.Dir(c.String("output")), ".", filepath.Base(c.String("output"))
		if !isYAML(l.evalFile) {
			return exit.Usagef("give a name such as eval.yaml", "--output must be a YAML file, got %q", c.String("output"))
		}
	case root == "":
		s.dir, l.dir = dir, "evals"
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	if err := refuseExisting(s.path(item{path: path.Join(l.dir, l.evalFile)})); err != nil {
		return err
	}
	if question.Asked(c) {
		err = o.propose(ctx, c, s, l, sk, name)
	} else {
		l.fromSkill(s, sk, name)
	}
	if err != nil {
		return finish(ctx, err)
	}
	if err := refuseExisting(s.existing()...); err != nil {
		return err
	}
	if err := o.check(s, l); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return o.diff(s)
	}
	return o.finish(ctx, c, s, path.Join(l.dir, l.evalFile))
}

func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && len(name) > len(ext)
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // only without a current directory
		return path
	}
	return abs
}

func refuseExisting(paths ...string) error {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			return exit.Usagef("remove it, or give another path with --output", "%s exists, and waza new overwrites nothing", path)
		}
	}
	return nil
}

// finish writes a scaffold and prints it.
func (o Options) finish(ctx context.Context, c *cli.Context, s *scaffold, suite string) error {
	done, err := s.write(ctx)
	if c.Bool("json") {
		if err != nil {
			return finish(ctx, err)
		}
		return o.Stdout.JSON(made{s.dir, done, countAdded(done)})
	}
	o.show(done)
	if err != nil {
		return finish(ctx, err)
	}
	_, err = fmt.Fprintf(o.Stdout, "%s added. Run them: waza run %s\n",
		text.Count(countAdded(done), "item", "items"), output.Clean(s.path(item{path: suite})))
	return err
}

// diff prints the files of a scaffold as a patch that creates them.
func (o Options) diff(s *scaffold) error {
	for _, it := range s.items {
		if it.isDir {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(it.text, "\n"), "\n")
		fmt.Fprintf(o.Stdout, "--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n", output.Clean(filepath.ToSlash(s.path(it))), len(lines))
		for _, line := range lines {
			fmt.Fprintf(o.Stdout, "+%s\n", output.Clean(line))
		}
	}
	return o.Stdout.Err()
}

// check loads the new suite from a temporary directory, and returns an error if it has errors.
func (o Options) check(s *scaffold, l layout) error {
	temp, err := os.MkdirTemp("", "waza-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	trial := scaffold{dir: temp, items: s.items}
	if _, err := trial.write(context.Background()); err != nil {
		return err
	}
	_, ds, err := eval.Load(trial.path(item{path: path.Join(l.dir, l.evalFile)}), eval.Options{
		Vocabulary: &eval.Vocabulary{Executors: plan.Executors.Kinds(), Graders: builtin.Graders.Kinds()},
	})
	if err != nil {
		return err
	}
	errs := ds.Errors()
	if len(errs) == 0 {
		return nil
	}
	for i, d := range errs {
		if rel, err := filepath.Rel(temp, filepath.FromSlash(d.File)); err == nil {
			errs[i].File = filepath.ToSlash(filepath.Join(s.dir, rel))
		}
	}
	if err := report.Diagnostics(o.Stderr, errs, report.Options{}); err != nil {
		return err
	}
	return exit.New(exit.Usage, fmt.Errorf("the suite would be invalid and was not written: %s", report.DiagnosticsSummary(errs)), "")
}
