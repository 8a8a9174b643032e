package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseAge(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for in, want := range map[string]time.Duration{
		"30d": 30 * day, "12h": 12 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "90m": 90 * time.Minute,
		"1d0.5s": day + 500*time.Millisecond,
	} {
		got, err := ParseAge(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{
		"", "0", "0d", "d", "30", "-1d", "-3h", "1d-3h", "30D", "x", "1dd", "1d2", "infd", "nand", "1e300d",
		"9999999999h", "106751d2562047h",
	} {
		_, err := ParseAge(in)
		require.Error(t, err, in)
	}
}

// The text of a duration is a valid age, and every age is positive.
func FuzzParseAge(f *testing.F) {
	for _, s := range []string{"30d", "1d12h", "-1h", "0.1d1ns", "1e5d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		age, err := ParseAge(s)
		if err != nil {
			require.Zero(t, age)
			return
		}
		require.Positive(t, age)
		again, err := ParseAge(age.String())
		require.NoError(t, err)
		require.Equal(t, age, again)
	})
}
