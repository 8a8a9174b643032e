package runner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
)

// The line after a hook is found however the output is divided, and similar output is kept.
func TestRepliesInParts(t *testing.T) {
	t.Parallel()
	const output = "one\n\nMAR\ntwo\nMARK\n"
	text := output + "\nMARK 13\nlater"
	for size := range len(text) {
		r, out := &replies{}, &proc.Limited{Max: 100}
		code := r.expect("MARK", out)
		for rest := text; rest != ""; {
			n := min(size+1, len(rest))
			_, err := r.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, 13, <-code)
		require.Equal(t, output, out.String(), "parts of %d", size+1)
	}
}

func TestQuotedForShell(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a b", "it's", "$x `y` \\\n\"", strings.Repeat("'", 3)} {
		out := &proc.Limited{Max: 100}
		require.NoError(t, proc.Run(t.Context(), proc.Command{Args: []string{"sh", "-c", "printf %s " + quoted(s)}, Stdout: out}))
		require.Equal(t, s, out.String())
	}
}
