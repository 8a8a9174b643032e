package promptfoo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each brace multiplies the texts that a pattern means.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int{
		"a,b":                         1,
		"{a,b}/*.{yaml,yml,json}":     6,
		"{a,{b,c}}":                   4,
		strings.Repeat("{,}", 6):      64,
		strings.Repeat("{,}", 100):    128,
		"{" + strings.Repeat(",", 99): 100,
	} {
		require.Equal(t, want, alternatives(pattern), pattern)
	}
}
