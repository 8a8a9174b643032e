// Package complete finds completions for the word at the cursor of a command line. The
// completion scripts of shells use it. Call [Words].
package complete

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
)

// Words returns the completions of the last of words, the arguments after waza.
func Words(app *cli.App, words []string) []string {
	words = joinEquals(words)
	if len(words) == 0 {
		words = []string{""}
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	at := flags.Arrangement{Name: "waza", Flags: app.Flags, Commands: app.Commands}
	var wants cli.Flag // the flag that the word is a value of
	for _, w := range before {
		switch {
		case wants != nil:
			wants = nil
		case w == "--":
			return nil // only arguments follow
		case strings.HasPrefix(w, "-"):
			if f := flags.Find(at.Flags, strings.TrimLeft(w, "-")); f != nil && flags.TakesValue(f) {
				wants = f
			}
		default:
			if c := at.Command(w); c != nil {
				at.Name, at.Flags, at.Commands = c.HelpName, c.Flags, c.Subcommands
			} else {
				at.Rest = append(at.Rest, w)
			}
		}
	}
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
		if f := flags.Find(at.Flags, strings.TrimLeft(name, "-")); f != nil {
			return startingWith(value, values(f, at))
		}
		return nil
	}
	switch {
	case wants != nil:
		return startingWith(word, values(wants, at))
	case strings.HasPrefix(word, "-"):
		return startingWith(word, flagWords(at.Flags))
	}
	return startingWith(word, arguments(app, at))
}

func values(f cli.Flag, at flags.Arrangement) []string {
	if words := listed(f); len(words) > 0 {
		return words
	}
	return valuesOf(f, at.Rest)
}

// choice finds the words that the help of a flag lists after the name of its value: "print the
// findings as `FORMAT`: text, json or sarif".
var choice = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`[A-Z]+`(?: only)?: ((?:[a-z-]+(?:, | or ))+[a-z-]+)(?:;|$)")
})

func listed(f cli.Flag) []string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return nil
	}
	m := choice().FindStringSubmatch(d.GetUsage())
	if m == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ")
}

// joinEquals rejoins --flag=value, which bash splits.
func joinEquals(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		if words[i] == "=" && len(out) > 0 && strings.HasPrefix(out[len(out)-1], "-") {
			out[len(out)-1] += "="
			if i+1 < len(words) {
				i++
				out[len(out)-1] += words[i]
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

func flagWords(flags []cli.Flag) []string {
	var words []string
	for _, f := range flags {
		if !help.Hidden(f) {
			words = append(words, "--"+f.Names()[0])
		}
	}
	return words
}

// arguments returns the subcommands and other words that can follow here.
func arguments(app *cli.App, at flags.Arrangement) []string {
	if at.Name == "waza help" && len(at.Rest) == 0 {
		at = flags.Arrangement{Name: "waza", Commands: app.Commands}
	}
	if len(at.Rest) > 0 {
		return argumentsOf(at.Name, at.Rest)
	}
	var words []string
	for _, c := range at.Commands {
		if !c.Hidden {
			words = append(words, c.Name)
		}
	}
	return append(words, argumentsOf(at.Name, nil)...)
}

func startingWith(prefix string, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}
