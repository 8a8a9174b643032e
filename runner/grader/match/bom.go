package match

import (
	"strings"
)

// ByteOrderMark is what some programs put before a text. JSON allows a reader to
// ignore it, and the decoders of the standard library refuse it.
const ByteOrderMark = "\ufeff"

// WithoutBOM removes a byte order mark from the beginning of a text.
func WithoutBOM(text string) string { return strings.TrimPrefix(text, ByteOrderMark) }
