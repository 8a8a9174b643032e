package scaffold

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/eval/files"
	"waza/eval/skill"
)

// focuses are the possible subjects of proposals, with their instructions for the model.
var focuses = map[string]string{
	"triggers":          "All tasks are prompts that should make an agent use the skill, in words that differ from the description.",
	"negative-triggers": "All tasks are prompts near the skill's subject for which an agent must not use the skill (should_trigger false).",
	"edge-fixtures": "All tasks come with files that are unusual: empty, malformed, very long lines, mixed " +
		"encodings, conflicting content.",
	"do-not-use-for": "All tasks are prompts that the description excludes after DO NOT USE FOR (should_trigger false).",
	"parameters":     "The tasks vary the parameters and options that the skill names, with usual, extreme and missing values.",
}

func focusNames() []string {
	return []string{"triggers", "negative-triggers", "edge-fixtures", "do-not-use-for", "parameters"}
}

// Suggest returns waza suggest.
func Suggest(o Options) *cli.Command {
	return &cli.Command{
		Name: "suggest", Category: help.Skills, ArgsUsage: "SKILL",
		Usage: "let a model propose a suite with tasks and fixtures for a skill",
		Description: `A model or an agent reads SKILL.md and proposes tasks with files. waza drops proposals
that waza validate would reject. It prints the suite, and writes it only with --apply.
To make a suite without a model, use waza new eval.

Examples:
  waza suggest my-skill --model claude-sonnet-4-5
  waza suggest my-skill --agent copilot --focus edge-fixtures --count 8 --apply

Exit codes: 0; 2 for wrong usage, or when a file exists and --force is not given; 3
without a usable answer.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "apply", Usage: "write the files"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the files and write nothing", Value: true, DefaultText: "on without --apply"},
			&cli.BoolFlag{Name: "force", Usage: "with --apply, replace files that exist"},
			&cli.StringFlag{Name: "output-dir", Usage: "write to `DIR`", DefaultText: "the directory evals of the skill"},
			flags.FormatFlag("yaml", "json"),
			&cli.IntFlag{Name: "count", Usage: "ask for `N` tasks, 1 to 20", Value: 5, DefaultText: "5"},
			&cli.StringFlag{
				Name: "focus", Usage: "ask for tasks about `SUBJECT`: " + strings.Join(focusNames(), ", "),
				DefaultText: "everything that the skill promises",
			},
			flags.JSON("the same as --format json"),
		}, question.Flags()...),
		Action: o.suggest,
	}
}

// suggested is the output of waza suggest --json.
type suggested struct {
	EvalYAML string          `json:"eval_yaml"`
	Tasks    []suggestedFile `json:"tasks"`
	Fixtures []suggestedFile `json:"fixtures"`
	// Triggers is trigger_tests.yaml.
	Triggers *suggestedFile `json:"trigger_tests,omitempty"`
	Dir      string         `json:"dir"`
	Applied  bool           `json:"applied"`
}

type suggestedFile struct {
	Path    string `json:"path" yaml:"path"` // relative to dir
	Content string `json:"content" yaml:"content"`
}

func (o Options) suggest(c *cli.Context) error {
	asJSON, err := o.checkSuggest(c)
	if err != nil {
		return err
	}
	p, root, err := o.project(".")
	if err != nil {
		return err
	}
	skills, _ := pathsOf(p)
	dir, err := skill.Find(c.Args().First(), absolute("."), filepath.Join(absolute(root), filepath.FromSlash(skills)))
	if err != nil {
		return exit.New(exit.Usage, err, "waza check lists the skills")
	}
	sk, err := skill.Read(dir)
	if err != nil {
		return err
	}
	name := filepath.Base(dir)
	if checkName(sk.Name) == nil {
		name = sk.Name
	}
	s, l := &scaffold{dir: c.String("output-dir")}, layoutOf(p, ".")
	if s.dir == "" {
		s.dir = filepath.Join(relativeTo(absolute("."), dir, "."), "evals")
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	if c.Bool("apply") && !c.Bool("force") {
		if err := refuseExisting(s.path(item{path: l.evalFile})); err != nil {
			return err
		}
	}
	if err := o.propose(ctx, c, s, l, sk, name); err != nil {
		return finish(ctx, err)
	}
	if err := o.check(s, l); err != nil {
		return err
	}
	if c.Bool("apply") {
		if err := s.apply(c.Bool("force")); err != nil {
			return err
		}
	}
	return o.printSuggested(s, l, asJSON, c.Bool("apply"))
}

// checkSuggest rejects wrong usage before the model is asked.
func (o Options) checkSuggest(c *cli.Context) (asJSON bool, err error) {
	format, err := flags.Format(c, "yaml", "json")
	if err != nil {
		return false, err
	}
	switch focus := c.String("focus"); {
	case c.NArg() != 1:
		return false, exit.Usagef("waza suggest my-skill --model MODEL", "waza suggest takes one skill, got %d", c.NArg())
	case !question.Asked(c):
		return false, exit.Usagef("for example --model claude-sonnet-4-5 or --agent copilot; waza new eval requires neither",
			"waza suggest requires --model or --agent")
	case c.IsSet("dry-run") && c.Bool("dry-run") && c.Bool("apply"):
		return false, exit.Usagef("omit one of them", "--dry-run and --apply cannot be combined")
	case c.IsSet("focus") && focuses[focus] == "":
		return false, flags.OneOf("focus", focus, focusNames()...)
	}
	return format == "json", nil
}

// apply writes the files of a scaffold. Existing files are an error, or are replaced with force.
func (s *scaffold) apply(force bool) error {
	if !force {
		if err := refuseExisting(s.existing()...); err != nil {
			return err
		}
	}
	for _, it := range s.items {
		if err := replaceFile(s.dir, s.path(it), it.text); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) printSuggested(s *scaffold, l layout, asJSON, applied bool) error {
	out := suggested{Tasks: []suggestedFile{}, Fixtures: []suggestedFile{}, Dir: filepath.ToSlash(s.dir), Applied: applied}
	for _, it := range s.items {
		f := suggestedFile{path.Clean(it.path), it.text}
		switch {
		case f.Path == path.Clean(l.evalFile):
			out.EvalYAML = it.text
		case f.Path == "trigger_tests.yaml":
			out.Triggers = &f
		case strings.HasPrefix(f.Path, "fixtures/"):
			out.Fixtures = append(out.Fixtures, f)
		default:
			out.Tasks = append(out.Tasks, f)
		}
	}
	if asJSON {
		return o.Stdout.JSON(out)
	}
	if applied {
		for _, it := range s.items {
			fmt.Fprintf(o.Stdout, "wrote %s\n", output.Clean(s.path(it)))
		}
		fmt.Fprintf(o.Stdout, "Run them: waza run %s\n", output.Clean(filepath.Join(s.dir, l.evalFile)))
		return o.Stdout.Err()
	}
	text, err := yaml.Marshal(struct {
		EvalYAML string          `yaml:"eval_yaml"`
		Tasks    []suggestedFile `yaml:"tasks"`
		Fixtures []suggestedFile `yaml:"fixtures"`
		Triggers *suggestedFile  `yaml:"trigger_tests,omitempty"`
	}{out.EvalYAML, out.Tasks, out.Fixtures, out.Triggers})
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n") {
		fmt.Fprintln(o.Stdout, output.Clean(line))
	}
	fmt.Fprintf(o.Stderr, "waza: nothing was written; --apply writes to %s\n", output.Clean(s.dir))
	return o.Stdout.Err()
}

// replaceFile writes a file below dir, complete or not at all.
func replaceFile(dir, name, text string) error {
	if err := files.MakeDir(dir, 0o777); err != nil {
		return err
	}
	return create(absolute(dir), absolute(name), text)
}
