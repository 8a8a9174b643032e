// Package tokens implements `waza tokens`, which counts the tokens of Markdown files, and
// checks, compares and reduces them. Call [Command]. For the tokens that clients of waza serve
// present, see package token.
package tokens

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/eval/decode"
	"waza/runner/tokens"
)

// Options holds the outputs of the command.
type Options struct {
	output.Streams
}

// access are the commands of waza token, which people type here by mistake.
var access = []string{"create", "list", "revoke"}

// Command returns waza tokens with its subcommands.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "tokens", Category: help.Skills,
		Usage: "count the tokens of skills and other Markdown files",
		Description: `Agents read a skill's files as tokens, and each costs time and money. waza counts tokens
of the encoding o200k_base without a network. Limits come from tokens.limits in .waza.yaml,
else from .token-limits.json, else they are: SKILL.md 500, references/**/*.md 1000,
docs/**/*.md 1500, README.md 3000, CONTRIBUTING.md 2500, other *.md 2000.

For the tokens that clients of waza serve present, see waza token.

Examples:
  waza tokens count                        all Markdown files below this directory
  waza tokens check --strict skills        fail when a file exceeds its limit
  waza tokens compare main                 changes since the branch main
  waza tokens suggest skills/my-skill      ways to save tokens`,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); slices.Contains(access, name) {
				return exit.Usagef("did you mean waza token "+name+"?", "unknown command %q: waza tokens counts tokens of files", name)
			}
			return flags.Required("waza tokens --help lists the commands", "waza tokens requires a command")(c)
		},
		Subcommands: []*cli.Command{o.countCommand(), o.checkCommand(), o.compareCommand(), o.profileCommand(), o.suggestCommand()},
	}
}

// pathsArg is the usage of the arguments of commands that take files.
const pathsArg = "[FILE|DIR…]"

func tokenizerFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "tokenizer", Usage: "count with `NAME`: bpe (o200k_base), or estimate (four bytes each)",
		Value: "bpe", DefaultText: "bpe",
	}
}

// counter counts the tokens of a text.
type counter func(text string) (int, error)

func counterOf(c *cli.Context) (counter, error) {
	name := c.String("tokenizer")
	if err := flags.OneOf("tokenizer", name, "bpe", "estimate"); err != nil {
		return nil, err
	}
	if name == "estimate" {
		return func(text string) (int, error) { return tokens.Estimate(text), nil }, nil
	}
	return tokens.Count, nil
}

// file is a counted file.
type file struct {
	Path       string `json:"-"`
	Tokens     int    `json:"tokens"`
	Characters int    `json:"characters"`
	Lines      int    `json:"lines"`
	text       string
}

// countFiles counts the Markdown files at the arguments, or below this directory, by path.
func countFiles(args []string, count counter) ([]file, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var list []file
	for _, arg := range args {
		names, err := tokens.Find(arg)
		if err != nil {
			return nil, exit.New(exit.Usage, err, "")
		}
		for _, name := range names {
			text, err := tokens.Read(name)
			if err != nil {
				return nil, exit.New(exit.Usage, err, "")
			}
			f, err := countText(text, count)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			f.Path = filepath.ToSlash(filepath.Clean(name))
			list = append(list, f)
		}
	}
	slices.SortFunc(list, byPath)
	return slices.CompactFunc(list, func(a, b file) bool { return a.Path == b.Path }), nil
}

func countText(text string, count counter) (file, error) {
	n, err := count(text)
	return file{Tokens: n, Characters: utf8.RuneCountInString(text), Lines: linesOf(text), text: text}, err
}

// linesOf returns the number of lines of a text. Text after the last line break is a line.
func linesOf(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// limitsHere returns the limits for this directory; findings about them go to stderr.
func (o Options) limitsHere() (*tokens.Limits, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	l, ds, err := tokens.FindLimits(dir)
	if werr := o.Diagnostics(withoutNotes(ds)); err == nil {
		err = werr
	}
	if err != nil {
		return nil, exit.New(exit.Usage, err, "")
	}
	return l, nil
}

func withoutNotes(ds decode.Diagnostics) decode.Diagnostics {
	return slices.DeleteFunc(slices.Clone(ds),
		func(d decode.Diagnostic) bool { return d.Severity != decode.Error && d.Severity != decode.Warning })
}

// stamp returns the time for the results.
func (o Options) stamp() string { return time.Now().UTC().Format(time.RFC3339) }
