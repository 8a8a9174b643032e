package lsp

import (
	"slices"
	"unicode/utf8"

	"go.lsp.dev/protocol"
)

// An Encoding is the unit in which a client counts the characters of a line. The zero value is
// UTF-16, which every client of the Language Server Protocol supports.
type Encoding int

// The encodings of the protocol.
const (
	UTF16 Encoding = iota // code units of two bytes
	UTF8                  // bytes
	UTF32                 // characters
)

// encodingOf returns the first supported encoding that the client offers.
func encodingOf(offered []protocol.PositionEncodingKind) Encoding {
	known := []protocol.PositionEncodingKind{
		protocol.PositionEncodingKindUTF16, protocol.PositionEncodingKindUTF8, protocol.PositionEncodingKindUTF32,
	}
	for _, kind := range offered {
		if i := slices.Index(known, kind); i >= 0 {
			return Encoding(i)
		}
	}
	return UTF16
}

// kind returns the encoding's name in the protocol.
func (e Encoding) kind() protocol.PositionEncodingKind {
	switch e {
	case UTF8:
		return protocol.PositionEncodingKindUTF8
	case UTF32:
		return protocol.PositionEncodingKindUTF32
	}
	return protocol.PositionEncodingKindUTF16
}

// units returns the number of units of a character; size is its length in UTF-8.
func (e Encoding) units(r rune, size int) int {
	switch {
	case e == UTF8:
		return size
	case e == UTF16 && r > 0xFFFF && r <= utf8.MaxRune:
		return 2
	}
	return 1
}
