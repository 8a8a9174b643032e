package match

import (
	"encoding/binary"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Fold returns a form of a text that is the same for all its spellings in upper and lower case.
// It uses full Unicode case folding: both Σ and ς become σ, and ß becomes ss. The result is
// for comparisons and not for people.
func Fold(text string) string {
	var out strings.Builder
	out.Grow(len(text) + utf8.UTFMax)
	for {
		at := nonASCII(text)
		writeLower(&out, text[:at])
		if text = text[at:]; text == "" {
			return out.String()
		}
		text = writeFolded(&out, text)
	}
}

// writeFolded writes the characters before the next one of ASCII, and returns the rest.
func writeFolded(out *strings.Builder, text string) string {
	folds := tables()
	for text != "" && text[0] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text)
		if folded := folds.of(r); folded != "" {
			out.WriteString(folded)
		} else {
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return text
}

// Words of eight bytes, in which each byte is the same.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// nonASCII returns the index of the first byte outside of ASCII, or the length of the text.
func nonASCII(text string) int {
	i := 0
	for ; i+8 <= len(text) && wordAt(text, i)&highBits == 0; i += 8 {
	}
	for ; i < len(text) && text[i] < utf8.RuneSelf; i++ {
	}
	return i
}

func wordAt(text string, i int) uint64 {
	_ = text[i+7]
	return uint64(text[i]) | uint64(text[i+1])<<8 | uint64(text[i+2])<<16 | uint64(text[i+3])<<24 |
		uint64(text[i+4])<<32 | uint64(text[i+5])<<40 | uint64(text[i+6])<<48 | uint64(text[i+7])<<56
}

// writeLower writes an ASCII text in lower case, eight bytes at a time. The first sum has the high
// bit of a byte that is at least A, the second that of a byte after Z. Capital letters have one
// of the two, and become small by their bit 0x20. No sum carries into the next byte.
func writeLower(out *strings.Builder, text string) {
	for len(text) >= 8 {
		var buf [256]byte
		n := min(len(text), len(buf)) &^ 7
		for i := 0; i < n; i += 8 {
			w := wordAt(text, i)
			capitals := (w + (0x80-'A')*eachByte) ^ (w + (0x80-'Z'-1)*eachByte)
			binary.LittleEndian.PutUint64(buf[i:], w|(capitals&highBits)>>2)
		}
		out.Write(buf[:n])
		text = text[n:]
	}
	for i := range len(text) {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		out.WriteByte(c)
	}
}

// foldTable contains the folded forms of characters, in pages of 256. Only letters with a case
// have one. Each character is folded by itself, and looking for it in the tables of package cases
// takes forty times as long.
type foldTable [unicode.MaxRune>>8 + 1]*[256]string

// of returns the folded form of a character; empty if it is the character itself.
func (t *foldTable) of(r rune) string {
	if page := t[r>>8]; page != nil {
		return page[r&0xff]
	}
	return ""
}

var tables = sync.OnceValue(func() *foldTable {
	t, folder := new(foldTable), cases.Fold()
	add := func(r rune) {
		folded := folder.String(string(r))
		if folded == string(r) {
			return
		}
		if t[r>>8] == nil {
			t[r>>8] = new([256]string)
		}
		t[r>>8][r&0xff] = folded
	}
	for _, cased := range []*unicode.RangeTable{
		unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase,
	} {
		for _, part := range cased.R16 {
			for r := rune(part.Lo); r <= rune(part.Hi); r += rune(part.Stride) {
				add(r)
			}
		}
		for _, part := range cased.R32 {
			for r := rune(part.Lo); r <= rune(part.Hi); r += rune(part.Stride) {
				add(r)
			}
		}
	}
	return t
})
