package lsp

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/protocol"

	"waza/eval/decode"
)

func at(line, character uint32) protocol.Position {
	return protocol.Position{Line: line, Character: character}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	const content = "a😀é\r\nb\rc\n\n"
	text := NewText(content, UTF16)
	require.Equal(t, 5, text.Lines())
	require.Equal(t, "a😀é", text.Line(0))
	require.Equal(t, "b", text.Line(1))
	require.Equal(t, "", text.Line(9))
	for _, c := range []struct {
		offset  int
		e       Encoding
		want    protocol.Position
		inexact bool // the position does not lead back to the offset
	}{
		{0, UTF16, at(0, 0), false},
		{1, UTF16, at(0, 1), false},
		{3, UTF16, at(0, 1), true}, // within 😀
		{5, UTF16, at(0, 3), false},
		{5, UTF8, at(0, 5), false},
		{5, UTF32, at(0, 2), false},
		{7, UTF16, at(0, 4), false},
		{8, UTF16, at(0, 4), true}, // between CR and LF
		{9, UTF16, at(1, 0), false},
		{11, UTF16, at(2, 0), false},
		{13, UTF16, at(3, 0), false},
		{14, UTF16, at(4, 0), false},
		{99, UTF16, at(4, 0), true},
	} {
		text := NewText(content, c.e)
		require.Equal(t, c.want, text.Position(c.offset), "%+v", c)
		if !c.inexact {
			require.Equal(t, c.offset, text.Offset(c.want), "%+v", c)
		}
	}
	require.Equal(t, 1, text.Offset(at(0, 2)), "a position within a character means its start")
	require.Equal(t, 7, text.Offset(at(0, 1<<31)), "beyond a line means its end")
	require.Equal(t, 14, text.Offset(at(1<<31, 7)), "beyond the text means its end")
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	text := NewText("\ufeffkey: 😀 x\n  second  \n", UTF16)
	require.Equal(t, len("\ufeff"), text.Place(1, 1), "a byte order mark is no character")
	require.Equal(t, len("\ufeffkey: 😀"), text.Place(1, 7))
	require.Equal(t, len("\ufeffkey: 😀 x"), text.Place(1, 99))
	require.Equal(t, len(text.String()), text.Place(99, 1))
	require.Zero(t, text.Place(0, 5))
	for name, c := range map[string]struct {
		d    decode.Diagnostic
		want protocol.Range
	}{
		"a word":            {decode.Diagnostic{Line: 1, Column: 6, EndColumn: 7}, protocol.Range{Start: at(0, 6), End: at(0, 8)}},
		"to the line's end": {decode.Diagnostic{Line: 1, Column: 6}, protocol.Range{Start: at(0, 6), End: at(0, 10)}},
		"a line":            {decode.Diagnostic{Line: 2}, protocol.Range{Start: at(1, 2), End: at(1, 8)}},
		"a file":            {decode.Diagnostic{}, protocol.Range{Start: at(0, 1), End: at(0, 10)}},
		"no such line":      {decode.Diagnostic{Line: 77, Column: 3, EndColumn: 9}, protocol.Range{Start: at(2, 0), End: at(2, 0)}},
	} {
		require.Equal(t, c.want, text.RangeOf(c.d), name)
	}
}

// reference is a text as code units, in which the protocol describes edits.
type reference []uint16

// lines returns the starts of all lines, and of their ends-of-line.
func (r reference) lines() (begins, ends []int) {
	begins = []int{0}
	for i := 0; i < len(r); i++ {
		if r[i] != '\n' && r[i] != '\r' {
			continue
		}
		ends = append(ends, i)
		if r[i] == '\r' && i+1 < len(r) && r[i+1] == '\n' {
			i++
		}
		begins = append(begins, i+1)
	}
	return begins, append(ends, len(r))
}

func (r reference) offset(p protocol.Position) int {
	begins, ends := r.lines()
	if int64(p.Line) >= int64(len(begins)) {
		return len(r)
	}
	at := min(int64(begins[p.Line])+int64(p.Character), int64(ends[p.Line]))
	if at > int64(begins[p.Line]) && at < int64(len(r)) && utf16.IsSurrogate(rune(r[at])) && r[at] >= 0xDC00 {
		at-- // within a pair
	}
	return int(at)
}

func (r reference) edit(rng protocol.Range, with string) reference {
	begin, end := r.offset(rng.Start), r.offset(rng.End)
	if end < begin {
		begin, end = end, begin
	}
	out := append(reference{}, r[:begin]...)
	out = append(out, utf16.Encode([]rune(with))...)
	return append(out, r[end:]...)
}

// FuzzEdits applies changes with arbitrary ranges, and compares the result with the protocol's
// rules: client and server always have the same text.
func FuzzEdits(f *testing.F) {
	f.Add("a😀b\r\nc\rd\n", "x", uint32(0), uint32(2), uint32(1), uint32(9))
	f.Add("", "😀\n", uint32(5), uint32(5), uint32(0), uint32(0))
	f.Add("\r\n\r\n", "\r", uint32(1), uint32(0), uint32(0), uint32(0))
	f.Add("key: \ufeffé\n", "", uint32(0), uint32(1<<31), uint32(1<<31), uint32(0))
	f.Fuzz(func(t *testing.T, text, with string, line, character, endLine, endCharacter uint32) {
		text, with = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(with, "?") // as in JSON
		rng := protocol.Range{Start: at(line, character), End: at(endLine, endCharacter)}
		want := string(utf16.Decode(reference(utf16.Encode([]rune(text))).edit(rng, with)))
		edited := NewText(text, UTF16).Edit(rng, with)
		require.Equal(t, want, edited.String())
		for _, e := range []Encoding{UTF8, UTF16, UTF32} {
			edited := NewText(want, e)
			offset := edited.Offset(rng.Start)
			require.True(t, offset == len(want) || utf8.RuneStart(want[offset]))
			require.Equal(t, offset, edited.Offset(edited.Position(offset)), "a place is found again")
			r := edited.RangeOf(decode.Diagnostic{Line: int(line), Column: int(character), EndColumn: int(endCharacter)})
			require.GreaterOrEqual(t, compare(r.End, r.Start), 0)
		}
	})
}
