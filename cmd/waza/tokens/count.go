package tokens

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/eval/text"
)

func (o Options) countCommand() *cli.Command {
	return &cli.Command{
		Name: "count", Usage: "count the tokens of Markdown files", ArgsUsage: pathsArg,
		Description: `Counts .md and .mdx files. A directory means all files below it, except in node_modules,
.git, dist and coverage; no argument means this directory. Characters are Unicode code
points.

Examples:
  waza tokens count --sort tokens skills
  waza tokens count --min-tokens 500 --json`,
		Flags: []cli.Flag{
			flags.FormatFlag("table", "json"),
			&cli.StringFlag{Name: "sort", Usage: "sort by `KEY`: path, tokens (most first) or name", Value: "path", DefaultText: "path"},
			&cli.IntFlag{Name: "min-tokens", Usage: "omit files with fewer than `N` tokens", DefaultText: "0"},
			&cli.BoolFlag{Name: "no-total", Usage: "omit the line of totals"},
			tokenizerFlag(),
			flags.JSON("the same as --format json"),
		},
		Action: o.count,
	}
}

// counts is the output of waza tokens count --json.
type counts struct {
	GeneratedAt string          `json:"generatedAt"`
	TotalTokens int             `json:"totalTokens"`
	TotalFiles  int             `json:"totalFiles"`
	Files       map[string]file `json:"files"`
}

func byPath(a, b file) int { return strings.Compare(a.Path, b.Path) }

var orders = map[string]func(a, b file) int{
	"path":   byPath,
	"tokens": func(a, b file) int { return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), byPath(a, b)) },
	"name": func(a, b file) int {
		return cmp.Or(strings.Compare(path.Base(a.Path), path.Base(b.Path)), byPath(a, b))
	},
}

func (o Options) count(c *cli.Context) error {
	format, err := flags.Format(c, "table", "json")
	if err != nil {
		return err
	}
	if err := flags.OneOf("sort", c.String("sort"), "path", "tokens", "name"); err != nil {
		return err
	}
	if n := c.Int("min-tokens"); n < 0 {
		return exit.Usagef("", "--min-tokens must not be negative, got %d", n)
	}
	count, err := counterOf(c)
	if err != nil {
		return err
	}
	list, err := countFiles(c.Args().Slice(), count)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(f file) bool { return f.Tokens < c.Int("min-tokens") })
	slices.SortStableFunc(list, orders[c.String("sort")])
	all := counts{GeneratedAt: o.stamp(), TotalFiles: len(list), Files: map[string]file{}}
	rows := [][]string{{"File", "Tokens", "Chars", "Lines"}}
	chars, lines := 0, 0
	for _, f := range list {
		all.Files[f.Path] = f
		all.TotalTokens += f.Tokens
		chars, lines = chars+f.Characters, lines+f.Lines
		rows = append(rows, []string{f.Path, fmt.Sprint(f.Tokens), fmt.Sprint(f.Characters), fmt.Sprint(f.Lines)})
	}
	if format == "json" {
		return o.Stdout.JSON(all)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(o.Stdout, "no Markdown files")
		return err
	}
	if !c.Bool("no-total") {
		rows = append(rows, []string{
			"Total: " + text.Count(len(list), "file", "files"), fmt.Sprint(all.TotalTokens), fmt.Sprint(chars),
			fmt.Sprint(lines),
		})
	}
	return o.Stdout.Table(rows)
}

func (o Options) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "compare the tokens of files with their limits", ArgsUsage: pathsArg,
		Description: `The limit of a file comes from its path in overrides, else from the most specific pattern
in defaults. A pattern can match the end of a path, after any slash.

Examples:
  waza tokens check
  waza tokens check --strict --quiet skills   in CI

Exit codes: 0; with --strict 2 when a file exceeds its limit.`,
		Flags: []cli.Flag{
			flags.FormatFlag("table", "json"),
			&cli.BoolFlag{Name: "strict", Usage: "exit with 2 when a file exceeds its limit"},
			&cli.BoolFlag{Name: "quiet", Usage: "print only files that exceed their limits"},
			tokenizerFlag(),
			flags.JSON("the same as --format json"),
		},
		Action: o.check,
	}
}

// checks is the output of waza tokens check --json.
type checks struct {
	Timestamp     string    `json:"timestamp"`
	TotalFiles    int       `json:"totalFiles"`
	ExceededCount int       `json:"exceededCount"`
	Results       []checked `json:"results"`
}

// checked is a file and its limit.
type checked struct {
	File     string `json:"file"`
	Tokens   int    `json:"tokens"`
	Limit    int    `json:"limit"`
	Pattern  string `json:"pattern"` // the source of the limit
	Exceeded bool   `json:"exceeded"`
}

func (o Options) check(c *cli.Context) error {
	format, err := flags.Format(c, "table", "json")
	if err != nil {
		return err
	}
	count, err := counterOf(c)
	if err != nil {
		return err
	}
	limits, err := o.limitsHere()
	if err != nil {
		return err
	}
	list, err := countFiles(c.Args().Slice(), count)
	if err != nil {
		return err
	}
	all := checks{Timestamp: o.stamp(), TotalFiles: len(list)}
	for _, f := range list {
		r := checked{File: f.Path, Tokens: f.Tokens}
		r.Limit, r.Pattern = limits.Of(absolute(f.Path))
		r.Exceeded = r.Tokens > r.Limit
		if r.Exceeded {
			all.ExceededCount++
		}
		if r.Exceeded || !c.Bool("quiet") {
			all.Results = append(all.Results, r)
		}
	}
	all.Results = output.NonNil(all.Results)
	if format == "json" {
		err = o.Stdout.JSON(all)
	} else {
		err = o.printChecks(all)
	}
	if err == nil && c.Bool("strict") && all.ExceededCount > 0 {
		return exit.With(exit.Usage)
	}
	return err
}

func (o Options) printChecks(all checks) error {
	rows := [][]string{{"File", "Tokens", "Limit", "Status"}}
	for _, r := range all.Results {
		status := "ok"
		if r.Exceeded {
			status = fmt.Sprintf("exceeded by %d", r.Tokens-r.Limit)
		}
		rows = append(rows, []string{r.File, fmt.Sprint(r.Tokens), fmt.Sprint(r.Limit), status})
	}
	if len(rows) > 1 {
		if err := o.Stdout.Table(rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(o.Stdout, "%d of %s over the limit\n", all.ExceededCount, text.Count(all.TotalFiles, "file is", "files are"))
	return err
}
