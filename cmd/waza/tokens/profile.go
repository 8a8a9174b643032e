package tokens

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/eval/skill"
)

func (o Options) profileCommand() *cli.Command {
	return &cli.Command{
		Name: "profile", Usage: "show the structure and size of skills", ArgsUsage: "[SKILL|DIR…]",
		Description: `Counts the tokens, headings, code blocks and numbered steps of each SKILL.md. The level of
detail depends on the tokens: minimal below 200, standard up to 1000, detailed up to 2500,
else comprehensive. No argument means all skills below this directory.

Examples:
  waza tokens profile
  waza tokens profile my-skill --json`,
		Flags: []cli.Flag{
			flags.FormatFlag("text", "json"),
			tokenizerFlag(),
			flags.JSON("the same as --format json"),
		},
		Action: o.profile,
	}
}

// profiled is a skill in the output of waza tokens profile --json.
type profiled struct {
	Name          string   `json:"name"`
	Path          string   `json:"path"`
	Tokens        int      `json:"tokens"`
	Sections      int      `json:"sections"`
	CodeBlocks    int      `json:"codeBlocks"`
	WorkflowSteps int      `json:"workflowSteps"`
	DetailLevel   string   `json:"detailLevel"`
	Warnings      []string `json:"warnings"`
}

// Levels of detail, by tokens.
const (
	minimal  = 200
	standard = 1000
	detailed = 2500
)

func (o Options) profile(c *cli.Context) error {
	format, err := flags.Format(c, "text", "json")
	if err != nil {
		return err
	}
	count, err := counterOf(c)
	if err != nil {
		return err
	}
	dirs, err := skillDirs(c.Args().Slice())
	if err != nil {
		return err
	}
	all := []profiled{}
	for _, dir := range dirs {
		s, err := skill.Read(dir)
		if err != nil {
			return exit.New(exit.Usage, err, "")
		}
		p, err := profileOf(s, count)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if format == "json" && len(all) == 1 {
		return o.Stdout.JSON(all[0])
	}
	if format == "json" {
		return o.Stdout.JSON(all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(o.Stdout, "no skills")
		return err
	}
	for _, p := range all {
		fmt.Fprintf(o.Stdout, "%s: %d tokens (%s), %d sections, %d code blocks, %d workflow steps\n",
			output.Clean(p.Name), p.Tokens, p.DetailLevel, p.Sections, p.CodeBlocks, p.WorkflowSteps)
		for _, w := range p.Warnings {
			fmt.Fprintf(o.Stdout, "  warning: %s\n", w)
		}
	}
	return o.Stdout.Err()
}

// skillDirs returns the directories of the skills that arguments name, or of all below here.
func skillDirs(args []string) ([]string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return skill.Below(here), nil
	}
	dirs, err := skill.FindAll(args, here)
	if err != nil {
		return nil, exit.New(exit.Usage, err, "")
	}
	return dirs, nil
}

func profileOf(s *skill.Skill, count counter) (profiled, error) {
	n, err := count(s.Text)
	if err != nil {
		return profiled{}, fmt.Errorf("%s: %w", s.File, err)
	}
	outline := skill.OutlineOf(s.Body)
	p := profiled{
		Name: s.Title(), Path: output.Path(s.File), Tokens: n, Sections: len(outline.Sections),
		CodeBlocks: len(outline.Blocks), WorkflowSteps: len(outline.Steps), DetailLevel: "comprehensive", Warnings: []string{},
	}
	switch {
	case n < minimal:
		p.DetailLevel = "minimal"
	case n <= standard:
		p.DetailLevel = "standard"
	case n <= detailed:
		p.DetailLevel = "detailed"
	default:
		p.Warnings = append(p.Warnings, fmt.Sprintf("more than %d tokens: move details to references/", detailed))
	}
	if p.WorkflowSteps == 0 {
		p.Warnings = append(p.Warnings, "no numbered workflow steps")
	}
	if strings.TrimSpace(s.Body) == "" {
		p.Warnings = append(p.Warnings, "the body is empty")
	} else if p.Sections == 0 {
		p.Warnings = append(p.Warnings, "no headings")
	}
	return p, nil
}
