package dispatch_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

//go:generate go test -run "^TestReference$" . -update

var update = flag.Bool("update", false, "rewrite docs/methods.md")

// The reference document describes the methods of the server. With -update, which make docs uses,
// it is rewritten.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../../docs/methods.md"
	text := rpc.Protocol().Reference()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(have), text, "run make docs")
	for _, want := range []string{
		"### `eval.run`", "| `context_dir` |", "### `eval.complete`", "| -32004 |", "Also `dir`.",
		"[Summary](#summary)", "### Summary",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "](#)")
	for line := range strings.Lines(text) { // every named object is described
		for _, link := range strings.Split(line, "](#")[1:] {
			name, _, _ := strings.Cut(link, ")")
			require.Contains(t, strings.ToLower(text), "### "+name+"\n")
		}
	}
}
