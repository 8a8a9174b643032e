package scaffold

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/project"
	"waza/eval/skill"
	"waza/eval/text"
)

// firstSkill is the skill of a new project.
const firstSkill = "code-explainer"

// Init returns waza init.
func Init(o Options) *cli.Command {
	return &cli.Command{
		Name: "init", Category: help.Suites, ArgsUsage: "[DIR]",
		Usage: "create a project with a skill, its suite and a CI workflow",
		Description: `Writes ` + project.Name + `, a first skill with a suite, a workflow for GitHub Actions,
.gitignore and README.md into DIR, or this directory, and a suite for each skill that
has none. It overwrites nothing: in an existing project, it adds missing items.

The suites run immediately: the executor mock needs no agent.

Examples:
  waza init
  waza init my-skills && cd my-skills && waza run
  waza init --agent claude-code            a workflow that installs and runs this agent
  waza init --no-skill --evals-dir tests`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-skill", Usage: "write no first skill"},
			&cli.StringFlag{Name: "skills-dir", Usage: "keep skills in `DIR` of the project", DefaultText: "from " + project.Name + ", else skills"},
			&cli.StringFlag{Name: "evals-dir", Usage: "keep suites in `DIR` of the project", DefaultText: "from " + project.Name + ", else evals"},
			&cli.StringFlag{
				Name: "results-dir", Usage: "make runs write results.json below `DIR` of the project",
				DefaultText: "none; the state directory records all runs",
			},
			agentFlag(),
			flags.JSON("print the items as JSON"),
		},
		Action: flags.AtMost(1, o.init),
	}
}

// initialized is the output of waza init --json.
type initialized struct {
	Dir    string    `json:"dir"`
	Items  []written `json:"items"`
	Added  int       `json:"added"`
	Result string    `json:"result"` // created, repaired or current
}

func (o Options) init(c *cli.Context) error {
	dir := c.Args().First()
	if dir == "" {
		dir = "."
	}
	for _, name := range []string{"skills-dir", "evals-dir", "results-dir"} {
		value := filepath.FromSlash(c.String(name))
		if c.IsSet(name) && (value == "" || !filepath.IsLocal(value)) {
			return exit.Usagef("give a directory below the project, such as "+name[:len(name)-len("-dir")],
				"--%s: %q is outside the project", name, c.String(name))
		}
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	s, existed, err := o.projectItems(ctx, dir, c)
	if err != nil {
		return err
	}
	done, err := s.write(ctx)
	if c.Bool("json") {
		if err != nil {
			return finish(ctx, err)
		}
		return o.Stdout.JSON(initialized{dir, done, countAdded(done), result(existed, countAdded(done))})
	}
	o.show(done)
	if err != nil {
		return finish(ctx, err)
	}
	switch n := countAdded(done); result(existed, n) {
	case "created":
		_, err = fmt.Fprintf(o.Stdout, "Project created — %s\n", text.Count(n, "item", "items"))
	case "repaired":
		_, err = fmt.Fprintf(o.Stdout, "Repaired — %d item(s) added\n", n)
	default:
		_, err = fmt.Fprintln(o.Stdout, "Project up to date")
	}
	return err
}

func result(existed bool, added int) string {
	switch {
	case added == 0:
		return "current"
	case existed:
		return "repaired"
	}
	return "created"
}

// projectItems lists the items of a project. existed reports whether a project existed.
func (o Options) projectItems(ctx context.Context, dir string, c *cli.Context) (s *scaffold, existed bool, err error) {
	s = &scaffold{dir: dir}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, false, exit.Usagef("name a new or existing directory", "%s is not a directory", dir)
	}
	var p *eval.Project
	if _, err := os.Lstat(filepath.Join(dir, project.Name)); err == nil {
		existed = true
		if p, _, err = eval.FindProject(dir); err != nil {
			return nil, false, err
		}
	}
	skills, evals := pathsOf(p)
	skills, evals = dirOr(filepath.ToSlash(c.String("skills-dir")), skills), dirOr(filepath.ToSlash(c.String("evals-dir")), evals)
	if !filepath.IsLocal(filepath.FromSlash(skills)) || !filepath.IsLocal(filepath.FromSlash(evals)) {
		return nil, false, exit.Usagef("correct the paths in "+p.File, "%s: paths.skills and paths.evals must be inside the project", p.File)
	}
	s.directory(skills)
	s.directory(evals)
	results := dirOr(filepath.ToSlash(c.String("results-dir")), "results") + "/"
	s.file(project.Name, render("project.yaml", struct{ Skills, Evals, Results string }{skills + "/", evals + "/", results}))
	w, err := o.newWorkflow(skills, evals, p, c.String("agent"))
	if err != nil {
		return nil, false, err
	}
	s.file(workflowFile, render("workflow.yml", w))
	s.file(".gitignore", render("gitignore", struct{ Results string }{results}))
	s.file("README.md", render("README.md", struct{ Title string }{"Skills and their suites"}))

	// A new project names its executor in .waza.yaml, which is not written yet.
	l := layoutOf(p, "")
	if !existed {
		l.executor = ""
	}
	found := skill.Below(filepath.Join(dir, filepath.FromSlash(skills)))
	if len(found) == 0 && !c.Bool("no-skill") {
		text := render("example.md", struct{ Name, Title string }{firstSkill, title(firstSkill)})
		s.file(path.Join(skills, firstSkill, skill.FileName), text)
		l.dir = path.Join(evals, firstSkill)
		l.firstTasks(s, skill.Parse("", []byte(text)), firstSkill)
	}
	others := suitesBelow(dir)
	for _, at := range found {
		if ctx.Err() != nil {
			return nil, false, finish(ctx, context.Cause(ctx))
		}
		sk, err := skill.Read(at)
		if err != nil || checkName(filepath.Base(at)) != nil || hasSuite(at, filepath.Join(dir, filepath.FromSlash(evals)), l.evalFile) {
			continue // waza check reports problems of skills
		}
		if other := suiteOf(others, filepath.Base(at), sk.Name); other != "" {
			s.file(other, "") // it exists and stays
			continue
		}
		l.dir = path.Join(evals, filepath.Base(at))
		l.fromSkill(s, sk, filepath.Base(at))
	}
	return s, existed, nil
}

// suitesBelow returns the suites of a project, in any format; none if it does not exist yet. Their paths
// are relative to it.
func suitesBelow(dir string) []discover.Summary {
	found, err := discover.Suites(dir, files.View{})
	if err != nil {
		return nil
	}
	for i := range found.Suites {
		if rel, err := filepath.Rel(dir, found.Suites[i].Path); err == nil {
			found.Suites[i].Path = filepath.ToSlash(rel)
		}
	}
	return found.Suites
}

// suiteOf returns the path of the first suite that is about a skill with one of the names, or "".
func suiteOf(suites []discover.Summary, names ...string) string {
	i := slices.IndexFunc(suites, func(s discover.Summary) bool { return s.Skill != "" && slices.Contains(names, s.Skill) })
	if i < 0 {
		return ""
	}
	return suites[i].Path
}

// hasSuite reports whether a skill has a suite in one of the usual places.
func hasSuite(skillDir, evals, evalFile string) bool {
	for _, file := range suitesOf(skillDir, evals, evalFile) {
		if flags.IsFile(file) {
			return true
		}
	}
	return false
}

// suitesOf returns the usual paths of a skill's suite.
func suitesOf(skillDir, evals, evalFile string) []string {
	return []string{
		filepath.Join(evals, filepath.Base(skillDir), evalFile),
		filepath.Join(skillDir, "evals", evalFile),
		filepath.Join(skillDir, evalFile),
	}
}
