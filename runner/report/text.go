package report

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Options control how reports are printed. The zero value prints plain text of any width.
type Options struct {
	// Color uses ANSI colors.
	Color bool
	// Width is the number of columns; 0 means no limit.
	Width int
}

// A color is the number of an ANSI color; 0 means none.
type colour int

const (
	red     colour = 31
	green   colour = 32
	yellow  colour = 33
	magenta colour = 35
	cyan    colour = 36
	bold    colour = 1
	dim     colour = 2
)

// A printer owns the text printed so far.
type printer struct {
	strings.Builder
	Options
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (o Options) paint(c colour, s string) string {
	if !o.Color || c == 0 || s == "" {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, s)
}

// An amount is a number in an enumeration, which leaves out those that are 0.
type amount struct {
	n      int
	what   string
	colour colour
}

// amounts continues an enumeration: each amount follows the separator.
func (o Options) amounts(separator string, list []amount) string {
	s := ""
	for _, a := range list {
		if a.n > 0 {
			s += separator + o.paint(a.colour, fmt.Sprintf("%d %s", a.n, a.what))
		}
	}
	return s
}

// Columns returns how many columns of a terminal a text takes. [Clean] must have returned the
// text.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Clean makes a text of an agent or suite safe to print in one line. The text cannot move the
// cursor, set colors or change the direction of writing. Line ends and tabs become blanks.
// Other such characters become escapes, and so does a part of each command of a CI system.
func Clean(s string) string {
	if strings.ContainsFunc(s, IsUnsafe) {
		s = escape(s)
	}
	return inert(s)
}

func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case !IsUnsafe(r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			} else {
				b.WriteRune(r)
			}
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// IsUnsafe reports whether [Clean] must check a character. These are control characters,
// characters that change the direction of writing, line separators, and possible invalid bytes.
func IsUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// Clip shortens a text that [Clean] has returned to that many columns. A shortened text ends
// with an ellipsis.
func Clip(s string, most int) string {
	if Columns(s) <= most {
		return s
	}
	if most <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += columns(r); n > most-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// pad fills a text with blanks up to that many columns.
func pad(s string, to int) string {
	return s + strings.Repeat(" ", max(0, to-Columns(s)))
}

// Wrap breaks a text at blanks into lines of at most that many columns; longer words stay whole.
// A width of 0 or less breaks nothing.
func Wrap(s string, most int) []string {
	if most <= 0 || Columns(s) <= most {
		return []string{s}
	}
	var lines []string
	line, n := "", 0
	for word := range strings.FieldsSeq(s) {
		w := Columns(word)
		if line != "" && n+1+w > most {
			lines = append(lines, line)
			line, n = "", 0
		}
		if line != "" {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+w
	}
	return append(lines, line)
}

// Duration formats a time for people: 12 ms, 1.2 s, 3 min 05 s, 2 h 10 min.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour-time.Second/2:
		s := int(math.Round(d.Seconds()))
		return fmt.Sprintf("%d min %02d s", s/60, s%60)
	}
	m := int(math.Round(d.Minutes()))
	return fmt.Sprintf("%d h %02d min", m/60, m%60)
}
