package journal

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decodeHex decodes like encoding/hex, except that it refuses capital letters.
func TestDecodeHex(t *testing.T) {
	t.Parallel()
	for high := range 256 {
		for low := range 256 {
			digits := string([]byte{byte(high), byte(low)})
			want, err := hex.DecodeString(digits)
			var got [1]byte
			require.Equal(t, err == nil && !strings.ContainsAny(digits, "ABCDEF"), decodeHex(got[:], []byte(digits)), "%q", digits)
			if err == nil && strings.ToLower(digits) == digits {
				require.Equal(t, want, got[:])
			}
		}
	}
}
