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
		line("R", "4194304", "1407355"): false, // it has an empty environment
		line("Z", "4194304", "0"):       false,
		line("R", "4194308", "0"):       false, // it is about to end
		line("I", "69238880", "0"):      false, // a kernel thread
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

// The environment of a process is read once for each program that it runs. Reading it in each
// sweep made the end of 100 runs take ten times as long.
func TestProgramOf(t *testing.T) {
	t.Parallel()
	fields := func(start, args, end string) []string {
		f := strings.Fields(strings.Repeat("1 ", 50))
		f[statStart], f[statArgs], f[statEnvEnd] = start, args, end
		return f
	}
	was, same := programOf(fields("7", "100", "200"), program{})
	require.False(t, same)
	for name, now := range map[string][]string{
		"another process":      fields("8", "100", "200"),
		"another program":      fields("7", "101", "200"),
		"a longer environment": fields("7", "100", "201"),
		"within an exec":       fields("7", "100", "0"),
		"too few fields":       fields("7", "100", "200")[:statArgs],
	} {
		_, same := programOf(now, was)
		require.False(t, same, name)
	}
	_, same = programOf(fields("7", "100", "200"), was)
	require.True(t, same)
	require.Equal(t, "\x00WAZA_A=1\x00\x00WAZA_B=\x00", string(onlyMarks([]byte("HOME=/\x00WAZA_A=1\x00X=WAZA_C=1\x00WAZA_B=\x00"))))
	require.True(t, hasVariable(onlyMarks([]byte("A=\x00WAZA_A=1\x00")), "WAZA_A=1\x00"))
}
