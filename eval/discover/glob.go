package discover

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// LongestGlob limits the length of a pattern, and so the time of one match.
const LongestGlob = 1000

// CompileGlob converts a pattern of slash-separated paths to a regular expression. '*', '?' and
// '[a-z]' match within one name, '**' as a whole name matches any number of directories, '{a,b}'
// matches a or b. The usual backtracking needs exponential time for malicious patterns; RE2 does
// not.
func CompileGlob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > LongestGlob {
		return nil, fmt.Errorf("longer than %d bytes", LongestGlob)
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, errors.New("malformed")
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	depth := 0
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteString(regexp.QuoteMeta(pattern[i+1 : i+2]))
			i += 2
		case c == '*':
			text, n := stars(pattern, i)
			b.WriteString(text)
			i += n
		case c == '?':
			b.WriteString(`[^/]`)
			i++
		case c == '[':
			text, n := class(pattern[i:])
			if n == 0 {
				return nil, errors.New("malformed")
			}
			b.WriteString(text)
			i += n
		case c == '{':
			depth++
			b.WriteString(`(?:`)
			i++
		case c == ',' && depth > 0:
			b.WriteByte('|')
			i++
		case c == '}' && depth > 0:
			depth--
			b.WriteByte(')')
			i++
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			i++
		}
	}
	return regexp.Compile(b.String() + `\z`)
}

// stars translates the stars at i, and the slash after them if they are a whole name. n is the
// length of the translated part.
func stars(pattern string, i int) (text string, n int) {
	rest := strings.TrimLeft(pattern[i:], "*")
	n = len(pattern) - i - len(rest)
	begins := i == 0 || strings.ContainsRune("/{,", rune(pattern[i-1]))
	switch {
	case n == 2 && begins && strings.HasPrefix(rest, "/"):
		return `(?:[^/]+/)*`, n + 1
	case n == 2 && begins && (rest == "" || rest[0] == '}' || rest[0] == ','):
		return `.*`, n
	}
	return `[^/]*`, n
}

// class translates "[a-z]" or "[!a-z]"; n is its length, 0 if it has no end.
func class(s string) (text string, n int) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		b.WriteString("^/")
		i++
	}
	for first := true; i < len(s); first = false {
		switch {
		case s[i] == ']' && !first:
			b.WriteByte(']')
			return b.String(), i + 1
		case s[i] == '-' && !first && i+1 < len(s) && s[i+1] != ']':
			b.WriteByte('-')
			i++
		default:
			if s[i] == '\\' && i+1 < len(s) {
				i++
			}
			r := []rune(s[i:min(len(s), i+4)])[0]
			fmt.Fprintf(&b, `\x{%x}`, r)
			i += max(1, len(string(r)))
		}
	}
	return "", 0
}
