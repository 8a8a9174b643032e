package match

import (
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/transform"
)

// Fold returns a form of a text that is the same for all its spellings in upper and lower case.
// It uses full Unicode case folding: both Σ and ς become σ, and ß becomes ss. The result is
// for comparisons and not for people.
func Fold(text string) string {
	at := nonASCII(text)
	if at == len(text) {
		return strings.ToLower(text) // the same for ASCII, and much faster
	}
	// Each character is folded by itself, so only those outside of ASCII need the tables.
	folder := cases.Fold()
	out := make([]byte, 0, len(text)+len(text)/8)
	for {
		for i := range at {
			c := text[i]
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			out = append(out, c)
		}
		if text = text[at:]; text == "" {
			return string(out)
		}
		end := 1
		for end < len(text) && text[end] >= utf8.RuneSelf {
			end++
		}
		out = appendFolded(out, folder, text[:end])
		text = text[end:]
		at = nonASCII(text)
	}
}

// nonASCII returns the index of the first byte outside of ASCII, or the length of the text.
func nonASCII(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

func appendFolded(out []byte, folder transform.Transformer, text string) []byte {
	var buf [256]byte
	for src := []byte(text); ; {
		n, read, err := folder.Transform(buf[:], src, true)
		out = append(out, buf[:n]...)
		if src = src[read:]; !errors.Is(err, transform.ErrShortDst) {
			return append(out, src...)
		}
	}
}
