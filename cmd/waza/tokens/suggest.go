package tokens

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/tokens"
)

func (o Options) suggestCommand() *cli.Command {
	return &cli.Command{
		Name: "suggest", Usage: "suggest ways to save tokens", ArgsUsage: pathsArg,
		Description: `Finds emojis, code blocks with more than 10 lines, tables with more than 10 rows, and
repeated paragraphs. It asks no model. The savings are estimates.

Examples:
  waza tokens suggest skills/my-skill
  waza tokens suggest --min-savings 50 --json`,
		Flags: []cli.Flag{
			flags.FormatFlag("text", "json"),
			&cli.IntFlag{Name: "min-savings", Usage: "omit suggestions that save fewer than `N` tokens", Value: 10, DefaultText: "10"},
			&cli.BoolFlag{Name: "copilot", Hidden: true},
			&cli.StringFlag{Name: "model", Hidden: true},
			flags.JSON("the same as --format json"),
		},
		Action: o.suggest,
	}
}

// suggestions is the output of waza tokens suggest --json.
type suggestions struct {
	Analyses []analysis `json:"analyses"`
}

// analysis lists the suggestions for a file.
type analysis struct {
	File             string       `json:"file"`
	Tokens           int          `json:"tokens"`
	Characters       int          `json:"characters"`
	Lines            int          `json:"lines"`
	Suggestions      []suggestion `json:"suggestions"`
	PotentialSavings int          `json:"potentialSavings"` // tokens
}

type suggestion struct {
	Line             int    `json:"line"`
	Issue            string `json:"issue"`
	Suggestion       string `json:"suggestion"`
	EstimatedSavings int    `json:"estimatedSavings"` // tokens
}

func (o Options) suggest(c *cli.Context) error {
	format, err := flags.Format(c, "text", "json")
	if err != nil {
		return err
	}
	if c.IsSet("copilot") || c.IsSet("model") {
		return exit.Usagef("waza dev SKILL --model MODEL improves a skill's description by measuring it",
			"waza tokens suggest does not use a model")
	}
	if n := c.Int("min-savings"); n < 0 {
		return exit.Usagef("", "--min-savings must not be negative, got %d", n)
	}
	list, err := countFiles(c.Args().Slice(), tokens.Count)
	if err != nil {
		return err
	}
	all := suggestions{Analyses: []analysis{}}
	for _, f := range list {
		a := analyze(f, c.Int("min-savings"))
		if len(a.Suggestions) > 0 || len(c.Args().Slice()) > 0 && flags.IsFile(c.Args().First()) {
			all.Analyses = append(all.Analyses, a)
		}
	}
	if format == "json" {
		return o.Stdout.JSON(all)
	}
	return o.printSuggestions(all)
}

func (o Options) printSuggestions(all suggestions) error {
	found := 0
	for _, a := range all.Analyses {
		if len(a.Suggestions) == 0 {
			continue
		}
		found++
		fmt.Fprintf(o.Stdout, "%s: %s, about %d could be saved\n", output.Clean(a.File),
			text.Count(a.Tokens, "token", "tokens"), a.PotentialSavings)
		for _, s := range a.Suggestions {
			fmt.Fprintf(o.Stdout, "  line %d: %s; %s (about %s)\n", s.Line, s.Issue, s.Suggestion, text.Count(s.EstimatedSavings, "token", "tokens"))
		}
	}
	if found == 0 {
		fmt.Fprintln(o.Stdout, "nothing to suggest")
	}
	return o.Stdout.Err()
}

const (
	longBlock = 10  // lines of code
	longTable = 10  // rows
	paragraph = 80  // minimum bytes of a repeated paragraph
	mostFound = 200 // suggestions per file
)

// analyze finds places where a file can be shorter.
func analyze(f file, least int) analysis {
	a := analysis{File: f.Path, Tokens: f.Tokens, Characters: f.Characters, Lines: f.Lines, Suggestions: []suggestion{}}
	lines := strings.Split(strings.ReplaceAll(f.text, "\r\n", "\n"), "\n")
	tokensOf := func(from, to int) int { // of lines, counted from 1
		return countOf(strings.Join(lines[max(from-1, 0):min(to, len(lines))], "\n"))
	}
	found := emojis(lines)
	for _, b := range skill.OutlineOf(strings.Join(lines, "\n")).Blocks {
		if b.Lines > longBlock {
			found = append(found, suggestion{
				b.Line, fmt.Sprintf("a code block has %d lines", b.Lines),
				"move it to a file in scripts/ or references/", tokensOf(b.Line+1+longBlock, b.Line+b.Lines),
			})
		}
	}
	for _, t := range tables(lines) {
		if rows := t.end - t.start - 1; rows > longTable {
			found = append(found, suggestion{
				t.start, fmt.Sprintf("a table has %d rows", rows), "move it to a file in references/",
				tokensOf(t.start+2+longTable, t.end),
			})
		}
	}
	for _, d := range duplicates(lines) {
		found = append(found, suggestion{d.start, fmt.Sprintf("the paragraph repeats line %d", d.first), "remove it", tokensOf(d.start, d.end)})
	}
	slices.SortStableFunc(found, func(x, y suggestion) int { return cmp.Compare(x.Line, y.Line) })
	for _, s := range found {
		if s.EstimatedSavings >= least && len(a.Suggestions) < mostFound {
			a.Suggestions = append(a.Suggestions, s)
			a.PotentialSavings += s.EstimatedSavings
		}
	}
	a.PotentialSavings = min(a.PotentialSavings, a.Tokens)
	return a
}

// countOf counts the tokens of a part of a file. It estimates them if counting fails.
func countOf(part string) int {
	n, err := tokens.Count(part)
	if err != nil {
		return tokens.Estimate(part)
	}
	return n
}

// emojis suggests removing all emojis of a file, at the line of the first.
func emojis(lines []string) []suggestion {
	var all strings.Builder
	first, n := 0, 0
	for i, line := range lines {
		for _, r := range line {
			if !isEmoji(r) {
				continue
			}
			if n++; first == 0 {
				first = i + 1
			}
			all.WriteRune(r)
			all.WriteByte(' ')
		}
	}
	if n == 0 {
		return nil
	}
	return []suggestion{{first, text.Count(n, "emoji", "emojis"), "remove them", max(countOf(all.String())-n, n)}}
}

// isEmoji reports whether a character is a picture rather than a letter or mark.
func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) && (r >= 0x1F000 || r >= 0x2600 && r <= 0x27BF || r >= 0x2B00 && r <= 0x2BFF)
}

// span is a range of lines, counted from 1, and the first line that it repeats.
type span struct{ start, end, first int }

// tables finds runs of lines that start with a bar.
func tables(lines []string) (found []span) {
	start := 0
	for i := 0; i <= len(lines); i++ {
		is := i < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i]), "|")
		if is && start == 0 {
			start = i + 1
		} else if !is && start > 0 {
			found = append(found, span{start: start, end: i})
			start = 0
		}
	}
	return found
}

// duplicates finds repeated paragraphs, with the line of the first occurrence.
func duplicates(lines []string) (found []span) {
	seen := map[string]int{}
	for i := 0; i < len(lines); {
		if strings.TrimSpace(lines[i]) == "" {
			i++
			continue
		}
		end := i
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" {
			end++
		}
		key := strings.ToLower(strings.Join(strings.Fields(strings.Join(lines[i:end], " ")), " "))
		if first, ok := seen[key]; ok && len(key) >= paragraph {
			found = append(found, span{i + 1, end, first})
		} else if !ok {
			seen[key] = i + 1
		}
		i = end
	}
	return found
}
