package proc

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatStarting(t *testing.T) {
	t.Parallel()
	line := func(state, flags, envEnd string) string {
		fields := strings.Fields(strings.Repeat("1 ", 50))
		fields[0], fields[statFlags], fields[statEnvEnd] = state, flags, envEnd
		return "77 (a) odd (name) " + strings.Join(fields, " ") + "\n"
	}
	for stat, want := range map[string]bool{
		line("R", "4194304", "0"):       true,
		line("R", "4194304", "1407355"): false, // it was given an empty environment
		line("Z", "4194304", "0"):       false,
		line("R", "4194308", "0"):       false, // it is about to end
		line("I", "69238880", "0"):      false, // a thread of the kernel
		line("R", "rubbish", "0"):       false,
		"77 (cut off) R 1":              false,
		"":                              false,
	} {
		require.Equal(t, want, startingAt(statFields(stat)), stat)
	}
	own, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	require.False(t, startingAt(statFields(string(own))))
	require.NotEqual(t, "0", strings.Fields(string(own)[strings.LastIndexByte(string(own), ')')+1:])[statEnvEnd])
}
