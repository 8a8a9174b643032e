package tokens

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/tokens"
)

// working is the name of the files on disk where a revision is expected.
const working = "WORKING"

func (o Options) compareCommand() *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare tokens between two revisions of git", ArgsUsage: "[BASE [HEAD]]",
		Description: `Compares the Markdown files below this directory. The default for BASE is the commit HEAD,
and for HEAD it is WORKING, the files on disk. BASE..HEAD works, too.

Examples:
  waza tokens compare                        uncommitted changes
  waza tokens compare main --threshold 10    fail when a file grew by more than 10 %
  waza tokens compare v1.0 v1.1 --skills

Exit codes: 0; 2 when a file exceeds --threshold or, with --strict, its limit, and for an
unknown revision.`,
		Flags: []cli.Flag{
			flags.FormatFlag("table", "json"),
			&cli.BoolFlag{Name: "show-unchanged", Usage: "also list files with the same number of tokens"},
			&cli.BoolFlag{Name: "strict", Usage: "exit with 2 when a file exceeds its limit"},
			&cli.BoolFlag{Name: "skills", Usage: "compare SKILL.md files only"},
			&cli.Float64Flag{Name: "threshold", Usage: "exit with 2 when an existing file grew by more than `PERCENT`", DefaultText: "none"},
			tokenizerFlag(),
			flags.JSON("the same as --format json"),
		},
		Action: flags.AtMost(2, o.compare),
	}
}

// comparison is the output of waza tokens compare --json.
type comparison struct {
	BaseRef   string       `json:"baseRef"`
	HeadRef   string       `json:"headRef"`
	Threshold *float64     `json:"threshold,omitempty"` // percent
	Passed    bool         `json:"passed"`
	Timestamp string       `json:"timestamp"`
	Summary   summary      `json:"summary"`
	Files     []difference `json:"files"`
}

type summary struct {
	TotalBefore    int     `json:"totalBefore"`
	TotalAfter     int     `json:"totalAfter"`
	TotalDiff      int     `json:"totalDiff"`
	PercentChange  float64 `json:"percentChange"`
	FilesAdded     int     `json:"filesAdded"`
	FilesRemoved   int     `json:"filesRemoved"`
	FilesModified  int     `json:"filesModified"`
	FilesUnchanged int     `json:"filesUnchanged"`
}

// difference is a file in two revisions. A missing file has 0 tokens.
type difference struct {
	File          string  `json:"file"`
	Before        int     `json:"before"`
	After         int     `json:"after"`
	Diff          int     `json:"diff"`
	PercentChange float64 `json:"percentChange"` // 100 for a file that was added
	Status        string  `json:"status"`        // added, removed, modified, unchanged
	Limit         int     `json:"limit,omitempty"`
	OverLimit     bool    `json:"overLimit,omitempty"`
}

func (o Options) compare(c *cli.Context) error {
	format, err := flags.Format(c, "table", "json")
	if err != nil {
		return err
	}
	count, err := counterOf(c)
	if err != nil {
		return err
	}
	base, head, err := refs(c)
	if err != nil {
		return err
	}
	if t := c.Float64("threshold"); c.IsSet("threshold") && !(t >= 0 && t < 1e9) {
		return exit.Usagef("", "--threshold must not be negative, got %v", t)
	}
	limits, err := o.limitsHere()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	before, err := textsAt(ctx, base, count, c.Bool("skills"))
	if err != nil {
		return err
	}
	after, err := textsAt(ctx, head, count, c.Bool("skills"))
	if err != nil {
		return err
	}
	all := comparison{BaseRef: base, HeadRef: head, Passed: true, Timestamp: o.stamp()}
	if c.IsSet("threshold") {
		t := c.Float64("threshold")
		all.Threshold = &t
	}
	all.add(before, after, limits)
	for _, f := range all.Files {
		grew := all.Threshold != nil && f.Status == "modified" && f.PercentChange > *all.Threshold
		if grew || c.Bool("strict") && f.OverLimit {
			all.Passed = false
		}
	}
	if !c.Bool("show-unchanged") {
		all.Files = slices.DeleteFunc(all.Files, func(d difference) bool { return d.Status == "unchanged" })
	}
	all.Files = output.NonNil(all.Files)
	if format == "json" {
		err = o.Stdout.JSON(all)
	} else {
		err = o.printComparison(all)
	}
	if err == nil && !all.Passed {
		return exit.With(exit.Usage)
	}
	return err
}

// refs returns the two revisions that the arguments name.
func refs(c *cli.Context) (base, head string, err error) {
	base, head = c.Args().Get(0), c.Args().Get(1)
	if b, h, ok := strings.Cut(base, ".."); ok && head == "" && !strings.HasPrefix(h, ".") {
		base, head = b, h
	}
	if base == "" {
		base = "HEAD"
	}
	if head == "" {
		head = working
	}
	return base, head, nil
}

// textsAt counts the Markdown files of a revision below this directory, by path.
func textsAt(ctx context.Context, ref string, count counter, skills bool) (map[string]file, error) {
	wanted := func(name string) bool {
		return tokens.IsMarkdown(name) && (!skills || filepath.Base(name) == skill.FileName) &&
			!slices.ContainsFunc(strings.Split(filepath.ToSlash(filepath.Dir(name)), "/"), tokens.Skipped)
	}
	found := map[string]file{}
	if ref == working {
		list, err := countFiles(nil, count)
		for _, f := range list {
			if wanted(f.Path) {
				found[f.Path] = f
			}
		}
		return found, err
	}
	texts, err := textsOf(ctx, ref, wanted)
	if err != nil {
		return nil, err
	}
	for name, text := range texts {
		f, err := countText(text, count)
		if err != nil {
			return nil, fmt.Errorf("%s:%s: %w", ref, name, err)
		}
		f.Path, found[name] = name, f
	}
	return found, nil
}

// add compares all files of both revisions.
func (all *comparison) add(before, after map[string]file, limits *tokens.Limits) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	s := &all.Summary
	for name := range names {
		was, existed := before[name]
		is, exists := after[name]
		d := difference{
			File: name, Before: was.Tokens, After: is.Tokens, Diff: is.Tokens - was.Tokens,
			PercentChange: percent(was.Tokens, is.Tokens),
		}
		switch {
		case !existed:
			d.Status = "added"
			s.FilesAdded++
		case !exists:
			d.Status = "removed"
			s.FilesRemoved++
		case was.Tokens != is.Tokens:
			d.Status = "modified"
			s.FilesModified++
		default:
			d.Status = "unchanged"
			s.FilesUnchanged++
		}
		if exists {
			d.Limit, _ = limits.Of(absolute(name))
			d.OverLimit = d.After > d.Limit
		}
		s.TotalBefore += d.Before
		s.TotalAfter += d.After
		all.Files = append(all.Files, d)
	}
	s.TotalDiff, s.PercentChange = s.TotalAfter-s.TotalBefore, percent(s.TotalBefore, s.TotalAfter)
	slices.SortFunc(all.Files, func(a, b difference) int { return strings.Compare(a.File, b.File) })
}

// percent returns the change from one number to another, in percent.
func percent(from, to int) float64 {
	if from == to {
		return 0
	}
	if from == 0 {
		return 100
	}
	return 100 * float64(to-from) / float64(from)
}

func (o Options) printComparison(all comparison) error {
	rows := [][]string{{"File", "Before", "After", "Change", "Percent", "Status"}}
	for _, d := range all.Files {
		status := d.Status
		if d.OverLimit {
			status += fmt.Sprintf(", over the limit of %d", d.Limit)
		}
		rows = append(rows, []string{
			d.File, fmt.Sprint(d.Before), fmt.Sprint(d.After), fmt.Sprintf("%+d", d.Diff),
			fmt.Sprintf("%+.1f %%", d.PercentChange), status,
		})
	}
	if len(rows) > 1 {
		if err := o.Stdout.Table(rows); err != nil {
			return err
		}
	}
	s := all.Summary
	_, err := fmt.Fprintf(o.Stdout, "%s → %s: %d → %d tokens (%+d, %+.1f %%); %s added, %d removed, %d modified, "+
		"%d unchanged\n", output.Clean(all.BaseRef), output.Clean(all.HeadRef),
		s.TotalBefore, s.TotalAfter, s.TotalDiff, s.PercentChange, text.Count(s.FilesAdded, "file", "files"),
		s.FilesRemoved, s.FilesModified, s.FilesUnchanged)
	if err == nil && !all.Passed {
		_, err = fmt.Fprintln(o.Stdout, "failed: a file grew beyond the threshold or is over its limit")
	}
	return err
}

// absolute returns an absolute path. Without a working directory, it returns name.
func absolute(name string) string {
	if abs, err := filepath.Abs(filepath.FromSlash(name)); err == nil {
		return abs
	}
	return name
}
