// Package pattern compiles the regular expressions of suites in one of two syntaxes. Call [Compile].
package pattern

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"

	"waza/eval/text"
)

// A Syntax is a syntax of regular expressions.
type Syntax string

// The syntaxes. Patterns of other tools are in that of JavaScript.
const (
	// RE2 is the syntax of Go, whose matches take linear time.
	RE2 Syntax = "re2"
	// JavaScript is the syntax of ECMAScript, with look-around and back-references. Flags at the start,
	// such as (?i), (?m), (?s) or (?im), apply to the whole pattern, as in Vally and in many files of
	// skill evals.
	JavaScript Syntax = "javascript"
)

// matchTimeout limits one search of a JavaScript pattern, which can take exponential time.
const matchTimeout = time.Second

// longestCount limits the searches for all matches of a JavaScript pattern together.
const longestCount = 5 * time.Second

// maxStack limits the backtracking of one search, in the units of the engine.
const maxStack = 1 << 20

// A Pattern is a compiled regular expression. It is safe for concurrent use.
type Pattern struct {
	text string
	re2  *regexp.Regexp
	js   *regexp2.Regexp
}

var leadingFlags = text.Pattern(`^\(\?([ims]+)\)`)

// Compile compiles a pattern. An empty syntax means [RE2].
func Compile(syntax Syntax, pattern string) (*Pattern, error) {
	p := &Pattern{text: pattern}
	var err error
	switch syntax {
	case "", RE2:
		p.re2, err = regexp.Compile(pattern)
		return p, err
	case JavaScript:
	default:
		return nil, fmt.Errorf("the syntax must be %s or %s, got %q", RE2, JavaScript, text.Clip(string(syntax), 40))
	}
	options := regexp2.ECMAScript
	for m := leadingFlags().FindStringSubmatch(pattern); m != nil; m = leadingFlags().FindStringSubmatch(pattern) {
		pattern = pattern[len(m[0]):]
		for _, flag := range m[1] {
			options |= map[rune]regexp2.RegexOptions{'i': regexp2.IgnoreCase, 'm': regexp2.Multiline, 's': regexp2.Singleline}[flag]
		}
	}
	if p.js, err = regexp2.Compile(pattern, options, regexp2.OptionMaxBacktrackingStackSize(maxStack)); err != nil {
		return nil, fmt.Errorf("%s", text.Clip(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 300))
	}
	p.js.MatchTimeout = matchTimeout
	return p, nil
}

// Count returns the number of matches in a text that do not overlap. The error means that the search
// took too long.
func (p *Pattern) Count(in string) (int, error) {
	if p.re2 != nil {
		return len(p.re2.FindAllStringIndex(in, -1)), nil
	}
	n, end := 0, time.Now().Add(longestCount)
	for m, err := p.js.FindStringMatch(in); ; m, err = p.js.FindNextMatch(m) {
		switch {
		case err != nil || time.Now().After(end):
			return 0, p.tooSlow()
		case m == nil:
			return n, nil
		}
		n++
	}
}

// tooSlow returns the error of a search that took too long.
func (p *Pattern) tooSlow() error {
	return fmt.Errorf("the pattern /%s/ takes too long: its search is stopped after %v or too many steps; make it simpler",
		text.Clip(p.text, 100), matchTimeout)
}

// Find returns the first match in a text, and whether there is one. The error means that the search
// took too long.
func (p *Pattern) Find(in string) (match string, found bool, err error) {
	if p.re2 != nil {
		at := p.re2.FindStringIndex(in)
		if at == nil {
			return "", false, nil
		}
		return in[at[0]:at[1]], true, nil
	}
	m, err := p.js.FindStringMatch(in)
	switch {
	case err != nil:
		return "", false, p.tooSlow()
	case m == nil:
		return "", false, nil
	}
	return m.String(), true, nil
}
