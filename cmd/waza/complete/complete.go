// Package complete finds what the word at the cursor of a command line may become, for
// the completion scripts of shells. Call [Words].
package complete

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
)

// Source has what the commands themselves do not say.
type Source struct {
	// Values are the values a flag takes, where these are a few words.
	Values func(f cli.Flag) []string
	// Arguments are the fixed words, beside subcommands, that may be the first argument
	// of a command, which is given with those above it: "waza runs show".
	Arguments func(command string) []string
}

// Words returns what the last of words, the arguments after waza, may become.
func Words(app *cli.App, words []string, s Source) []string {
	words = joinEquals(words)
	if len(words) == 0 {
		words = []string{""}
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	at := flags.Arrangement{Name: "waza", Flags: app.Flags, Commands: app.Commands}
	var wants cli.Flag // the flag of which the word is the value
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
			return startingWith(value, s.Values(f))
		}
		return nil
	}
	switch {
	case wants != nil:
		return startingWith(word, s.Values(wants))
	case strings.HasPrefix(word, "-"):
		return startingWith(word, flagWords(at.Flags))
	}
	return startingWith(word, s.arguments(app, at))
}

// joinEquals puts --flag=value together again, which bash takes apart.
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
		words = append(words, "--"+f.Names()[0])
	}
	return words
}

// arguments are the subcommands and other words that may stand here.
func (s Source) arguments(app *cli.App, at flags.Arrangement) []string {
	if len(at.Rest) > 0 {
		return nil
	}
	if at.Name == "waza help" {
		return s.arguments(app, flags.Arrangement{Name: "waza", Commands: app.Commands})
	}
	var words []string
	for _, c := range at.Commands {
		if !c.Hidden {
			words = append(words, c.Name)
		}
	}
	return append(words, s.Arguments(at.Name)...)
}

func startingWith(prefix string, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}
