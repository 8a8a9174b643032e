package skill

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The markers before lists of cases in descriptions: when to use a skill, when not to use it,
// and others. Letter case does not matter.
var (
	useMarkers   = []string{"use for:", "trigger phrases include:", "triggers:", "when:"}
	avoidMarkers = []string{"do not use for:", "don't use for:", "not for:"}
	otherMarkers = []string{"invokes:", "for single operations:"}
)

// A marker is the place of one in a description.
type marker struct {
	start, end int // bytes
	kind       int // 0 use, 1 avoid, 2 other
}

// Phrases returns the phrases that the description lists after markers such as "USE FOR:" and
// "DO NOT USE FOR:". They are separated by commas, semicolons, quotes and line breaks. A list
// ends at the next marker or sentence.
func (s *Skill) Phrases() (use, avoid []string) {
	marks := findMarkers(s.Description)
	for i, m := range marks {
		end := len(s.Description)
		if i+1 < len(marks) {
			end = marks[i+1].start
		}
		switch list := splitPhrases(s.Description[m.end:end]); m.kind {
		case 0:
			use = append(use, list...)
		case 1:
			avoid = append(avoid, list...)
		}
	}
	return use, avoid
}

// Summary returns the description up to its first marker.
func (s *Skill) Summary() string {
	text := s.Description
	if marks := findMarkers(text); len(marks) > 0 {
		text = text[:marks[0].start]
	}
	return strings.TrimSpace(text)
}

// findMarkers returns the markers of a text in order, the longest at each place.
func findMarkers(text string) []marker {
	var found []marker
	for i := 0; i < len(text); {
		m, ok := markerAt(text, i)
		if !ok {
			i++
			continue
		}
		found = append(found, m)
		i = m.end
	}
	return found
}

func markerAt(text string, i int) (marker, bool) {
	if before, _ := utf8.DecodeLastRuneInString(text[:i]); i > 0 && (unicode.IsLetter(before) || unicode.IsNumber(before)) {
		return marker{}, false
	}
	best := marker{}
	for kind, words := range [][]string{useMarkers, avoidMarkers, otherMarkers} {
		for _, word := range words {
			if end := i + len(word); end <= len(text) && end > best.end && strings.EqualFold(text[i:end], word) {
				best = marker{i, end, kind}
			}
		}
	}
	return best, best.end > 0
}

func splitPhrases(list string) []string {
	list = firstSentence(list)
	fields := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(",;\n\"“”", r) })
	for i, f := range fields {
		fields[i] = strings.Trim(strings.Join(strings.Fields(f), " "), " .'*-")
	}
	return slices.DeleteFunc(fields, func(f string) bool { return f == "" })
}

// firstSentence cuts a list before the next sentence: after a full stop before a capital letter.
func firstSentence(list string) string {
	for i := 0; i < len(list); i++ {
		if list[i] != '.' {
			continue
		}
		rest := strings.TrimLeft(list[i+1:], " \t\n")
		if r, _ := utf8.DecodeRuneInString(rest); len(rest) < len(list)-i-1 && unicode.IsUpper(r) {
			return list[:i]
		}
	}
	return list
}
