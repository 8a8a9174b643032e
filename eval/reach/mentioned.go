package reach

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
)

// maxMentioned limits the words of a text that are tried as file names.
const maxMentioned = 1000

// Mentioned returns the absolute paths of the regular files at or below the suite's directory
// that shell commands, or the arguments of a program, name. Names can be relative to dir, which
// is relative to the suite's directory, or start with $WAZA_SUITE_DIR. Mentioned only splits
// commands into words and runs nothing. So it misses names that a command builds from parts. It
// ignores the targets of '>'. It returns each file once.
func (p Places) Mentioned(dir string, commands ...string) []string {
	base := filepath.FromSlash(dir)
	if !filepath.IsAbs(base) {
		base = filepath.Join(p.Dir, base)
	}
	suiteDir := strings.NewReplacer("${WAZA_SUITE_DIR}", p.Dir, "$WAZA_SUITE_DIR", p.Dir)
	var found []string
	words := 0
	for _, command := range commands {
		for word := range wordsOf(command) {
			if words++; words > maxMentioned {
				return found
			}
			path := filepath.Clean(filepath.FromSlash(suiteDir.Replace(word)))
			if !filepath.IsAbs(path) {
				path = filepath.Join(base, path)
			}
			if Within(p.Dir, path) && !slices.Contains(found, path) && files.IsRegular(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// wordsOf returns the words of a shell command, except the targets of redirected output.
func wordsOf(command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := command; rest != ""; {
			start := strings.IndexFunc(rest, func(r rune) bool { return !BetweenWords(r) })
			if start < 0 {
				return
			}
			written := strings.Contains(rest[:start], ">")
			rest = rest[start:]
			end := strings.IndexFunc(rest, BetweenWords)
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

// BetweenWords reports whether a character separates the words of a shell command.
func BetweenWords(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;&|<>()=,", r) }
