package skills

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/readiness"
	"waza/runner/report"
)

func (o Options) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Category: help.Skills, ArgsUsage: "[SKILL|DIR…]",
		Usage: "check whether skills are ready for use",
		Description: `A skill is ready when its SKILL.md follows the Agent Skills specification, its description
reaches Medium-High, it is within its token limit, its links work, and its suite, if it
has one, is valid. A description is Low if it is shorter than 150 characters or has no
triggers. Medium lists uses ("USE FOR:"), Medium-High also exclusions ("DO NOT USE FOR:"),
High also tools ("INVOKES:"). A skill can be ready despite pieces of advice.

SKILL is a name or a path; no argument means all skills of the project or below this
directory. To check suites, use waza validate; to test whether they can be fooled, waza attack.

Examples:
  waza check                          all skills, as a table
  waza check my-skill                 one, with all findings and the next steps
  waza check --strict --urls skills   in CI, including links to the web

Exit codes: 0 whether ready or not; with --strict 1 when a skill is not ready; 2 for an
unknown skill.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "exit with 1 when a skill is not ready"},
			&cli.BoolFlag{Name: "urls", Usage: "request the URLs of links, each for at most 10s, up to 100 per skill"},
			flags.FormatFlag("text", "json"),
			flags.JSON("the same as --format json"),
		},
		Action: o.check,
	}
}

// checked is the output of waza check --json.
type checked struct {
	Timestamp string              `json:"timestamp"`
	Skills    []*readiness.Report `json:"skills"`
}

func (o Options) check(c *cli.Context) error {
	format, err := flags.Format(c, "text", "json")
	if err != nil {
		return err
	}
	here, err := o.here()
	if err != nil {
		return err
	}
	dirs, err := here.skills(c.Args().Slice())
	if err != nil {
		return err
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	ro := readiness.Options{Vocabulary: rn.Planner().Vocabulary(), Suites: here.suites, Shown: output.Path}
	if c.Bool("urls") {
		ro.URLs = func(urls []string) map[string]string { return deadURLs(ctx, urls) }
	}
	all := checked{Timestamp: time.Now().UTC().Format(time.RFC3339), Skills: []*readiness.Report{}}
	for _, dir := range dirs {
		r, err := readiness.Check(dir, ro)
		if err != nil {
			return exit.New(exit.Usage, err, "")
		}
		all.Skills = append(all.Skills, r)
	}
	if ctx.Err() != nil {
		return exit.With(exit.Interrupted)
	}
	switch {
	case format == "json":
		err = o.Stdout.JSON(all)
	case len(all.Skills) == 1:
		err = o.printReport(all.Skills[0])
	default:
		err = o.printReports(all.Skills)
	}
	if err == nil && c.Bool("strict") && slices.ContainsFunc(all.Skills, func(r *readiness.Report) bool { return !r.Ready }) {
		return exit.With(exit.Failed)
	}
	return err
}

// printReports prints a line for each skill.
func (o Options) printReports(list []*readiness.Report) error {
	rows := [][]string{{"Skill", "Ready", "Compliance", "Tokens", "Spec", "Links", "Schema", "Eval"}}
	ready := 0
	for _, r := range list {
		is := "no"
		if r.Ready {
			is = "yes"
			ready++
		}
		rows = append(rows, []string{r.Name, is, r.Compliance.Level.String(), fmt.Sprintf("%d/%d", r.Tokens.Count, r.Tokens.Limit),
			fmt.Sprintf("%d/%d", r.SpecPassed(), len(r.Spec)), fmt.Sprintf("%d/%d", r.Links.Valid, r.Links.Total), schemaWord(r), evalWord(r)})
	}
	if err := o.Stdout.Table(rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.Stdout, "%d of %s ready; waza check SKILL shows why\n", ready, text.Count(len(list), "skill is", "skills are"))
	return err
}

func schemaWord(r *readiness.Report) string {
	switch {
	case r.Schema == nil:
		return "-"
	case r.Schema.Valid:
		return "valid"
	}
	return "invalid"
}

func evalWord(r *readiness.Report) string {
	if r.Eval.Found {
		return r.Eval.Path
	}
	return "none"
}

// printReport prints the complete report of a skill.
func (o Options) printReport(r *readiness.Report) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(output.Clean(strings.TrimSpace(fmt.Sprintf(format, args...))) + "\n")
	}
	state := "not ready"
	if r.Ready {
		state = "ready"
	}
	line("%s: %s", r.Name, state)
	b.WriteString("\n")
	tokens := fmt.Sprintf("%d of %d", r.Tokens.Count, r.Tokens.Limit)
	if r.Tokens.Status != "ok" {
		tokens += ", " + r.Tokens.Status
	}
	rows := [][]string{
		{"Check", "Result"},
		{"Description", r.Compliance.Level.String()},
		{"Tokens", tokens},
		{"Specification", fmt.Sprintf("%d of %d checks passed", r.SpecPassed(), len(r.Spec))},
		{"Links", fmt.Sprintf("%d of %d valid", r.Links.Valid, r.Links.Total)},
		{"Suite", strings.TrimSuffix(evalWord(r)+", "+schemaWord(r), ", -")},
	}
	if r.MCP != nil {
		rows = append(rows, []string{"MCP integration", fmt.Sprintf("%d of %d", r.MCP.Score, r.MCP.Total)})
	}
	if err := report.Table(&b, rows, terminal.Options(o.Stdout)); err != nil {
		return err
	}
	findings := findingsOf(r)
	if len(findings) > 0 {
		b.WriteString("\nFindings:\n")
	}
	for _, f := range findings {
		b.WriteString("  ")
		line("%s", f)
	}
	b.WriteString("\nNext steps:\n")
	for i, step := range r.Next {
		b.WriteString("  ")
		line("%d. %s", i+1, step)
	}
	switch {
	case len(r.Next) == 0 && r.Eval.Found:
		b.WriteString("  ")
		line("test whether the suite can be fooled: waza attack %s", r.Eval.Path)
	case len(r.Next) == 0:
		b.WriteString("  none\n")
	}
	_, err := o.Stdout.Write([]byte(b.String()))
	return err
}

// findingsOf lists the problems, in the format of compilers.
func findingsOf(r *readiness.Report) (list []string) {
	add := func(place string, line int, severity, format string, args ...any) {
		if line > 0 {
			place = fmt.Sprintf("%s:%d", place, line)
		}
		list = append(list, place+": "+severity+": "+fmt.Sprintf(format, args...))
	}
	finding := func(f readiness.Finding, severity string) {
		if f.Status == "ok" {
			return
		}
		evidence := ""
		if f.Evidence != "" {
			evidence = fmt.Sprintf(" (%s)", f.Evidence)
		}
		add(r.Path, f.Line, severity, "%s%s [%s]", f.Summary, evidence, f.Name)
	}
	for _, f := range r.Spec {
		finding(f, f.Status)
	}
	for _, i := range r.Compliance.Issues {
		add(r.Path, 0, i.Severity, "%s [description]", i.Message)
	}
	for _, links := range [][]readiness.Link{r.Links.Broken, r.Links.Directories, r.Links.Escapes, r.Links.Dead} {
		for _, l := range links {
			add(path.Join(path.Dir(r.Path), l.Source), l.Line, "error", "%s: %s [links]", l.Target, l.Reason)
		}
	}
	for _, file := range r.Links.Orphans {
		add(path.Join(path.Dir(r.Path), file), 0, "warning", "no link to this file [links]")
	}
	if r.MCP != nil {
		for _, issue := range r.MCP.Issues {
			add(r.Path, 0, "warning", "%s [mcp]", issue)
		}
	}
	if r.Schema != nil {
		for _, e := range r.Schema.EvalErrors {
			add(r.Eval.Path, 0, "error", "%s [schema]", e)
		}
		for _, file := range slices.Sorted(maps.Keys(r.Schema.TaskErrors)) {
			for _, e := range r.Schema.TaskErrors[file] {
				add(file, 0, "error", "%s [schema]", e)
			}
		}
	}
	for _, f := range r.Advisory {
		finding(f, "advice")
	}
	return list
}
