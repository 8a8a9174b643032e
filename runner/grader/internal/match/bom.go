package match

import (
	"strings"
)

// ByteOrderMark is a mark that some programs write before a text. JSON allows readers to ignore
// it, but the decoders of the standard library reject it.
const ByteOrderMark = "\ufeff"

// WithoutBOM removes a byte order mark from the start of a text.
func WithoutBOM(text string) string { return strings.TrimPrefix(text, ByteOrderMark) }
