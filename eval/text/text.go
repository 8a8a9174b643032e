// Package text shortens texts and counts nouns for messages. Call [Clip] for a
// text that goes into a message, [Head] where the mark of the cut is the
// caller's, and [Count] for a number with its noun.
//
// Texts are cut between characters, so that valid UTF-8 stays valid. A text
// that is short enough comes back as it is. What fits a number of columns of a
// terminal is not decided here but in package report.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Head returns the beginning of s, at most that many bytes.
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

// ClipRunes is [Clip] for a limit in runes: people see them, and names of
// every script get the same room.
func ClipRunes(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
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

// ClipMiddle shortens s to about that many bytes: two thirds of them from its
// beginning, one from its end, and between them a line that counts the rest.
func ClipMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, from := Head(s, most*2/3), tail(s, most/3)
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, from-len(head), s[from:])
}

// tail returns where the last at most that many bytes of s begin.
func tail(s string, most int) int {
	from := len(s) - most
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return from
}

// Plural returns the form of a noun that a number takes.
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

// Names lists names, separated by commas: ten at most, and how many more there are.
func Names(names []string) string {
	const most = 10
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}
