// Package text shortens texts and counts nouns for messages. Call [Clip] for a text in a
// message, [Head] if the caller marks the cut, and [Count] for a number with its noun.
//
// Texts are cut between characters, so that valid UTF-8 stays valid. Short texts are returned
// unchanged. Package report fits texts to the columns of a terminal.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Head returns the start of s, at most that many bytes.
func Head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:max(most, 0)]
}

// Clip shortens s to at most that many bytes and an ellipsis.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Head(s, most) + "…"
}

// ClipRunes shortens s to at most that many runes, of which the last is an ellipsis. Names in
// every script get the same space.
func ClipRunes(s string, most int) string {
	n, cut := 0, 0
	for i := range s {
		if n == most-1 {
			cut = i
		}
		if n == most {
			return s[:cut] + "…"
		}
		n++
	}
	return s
}

// ClipStart shortens s to an ellipsis and its end of at most that many bytes.
func ClipStart(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return "…" + s[tail(s, most):]
}

// ClipMiddle shortens s to about that many bytes: two thirds of them from its start and one
// third from its end. A line between them counts the bytes that were left out.
func ClipMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, from := Head(s, most*2/3), tail(s, most/3)
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, from-len(head), s[from:])
}

// tail returns the offset of the last most bytes of s, moved forward to the start of a
// character.
func tail(s string, most int) int {
	from := len(s) - most
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return from
}

// Plural returns the form of a noun for a number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count returns a number with its noun: 1 trial, 2 trials.
func Count(n int, one, many string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, one, many))
}

// Names returns names separated by commas: at most ten, and how many more there are.
func Names(names []string) string {
	const most = 10
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// Line returns the nth line of a text, from 1, without its end; "" if it does not exist. It
// builds no index of all lines, because that would be larger than the text.
func Line(text string, n int) string {
	for ; n > 1; n-- {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		text = text[i+1:]
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
