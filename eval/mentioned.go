package eval

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
)

// maxMentioned bounds the words of a text that are taken for names of files.
const maxMentioned = 1000

// Mentioned returns the absolute paths of the regular files at or below the
// suite's directory that shell commands name, or the arguments of a program:
// relative to dir, which is relative to the suite's, or by $WAZA_SUITE_DIR. It
// takes commands for words and runs nothing, so what a command makes up of parts
// it does not find; what a command writes to by '>' is none. Each file is returned
// once.
func (s *Suite) Mentioned(dir string, commands ...string) []string {
	base := filepath.FromSlash(dir)
	if !filepath.IsAbs(base) {
		base = filepath.Join(s.Dir, base)
	}
	suiteDir := strings.NewReplacer("${WAZA_SUITE_DIR}", s.Dir, "$WAZA_SUITE_DIR", s.Dir)
	var found []string
	words := 0
	for _, command := range commands {
		for word := range wordsOf(command) {
			if words++; words > maxMentioned {
				return found
			}
			path := filepath.FromSlash(suiteDir.Replace(word))
			if !filepath.IsAbs(path) {
				path = filepath.Join(base, path)
			}
			if within(s.Dir, path) && !slices.Contains(found, path) && files.IsRegular(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// wordsOf gives the words of a shell command, but for those that output goes to.
func wordsOf(command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := command; rest != ""; {
			start := strings.IndexFunc(rest, func(r rune) bool { return !betweenWords(r) })
			if start < 0 {
				return
			}
			written := strings.Contains(rest[:start], ">")
			rest = rest[start:]
			end := strings.IndexFunc(rest, betweenWords)
			if end < 0 {
				end = len(rest)
			}
			if !written && !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// betweenWords reports what parts the words of a shell command.
func betweenWords(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;&|<>()=,", r) }
