//go:build unix

package main_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// `waza list | head -1` ended with the exit code of a harness error.
func TestClosedPipeEndsQuietly(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"list", "../../testdata/suites/hello"}, {"help", "--json"}, {"--help"}} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		var stderr bytes.Buffer
		cmd := exec.Command("waza", args...)
		cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir())
		cmd.Stdout, cmd.Stderr = w, &stderr
		err = cmd.Run()
		require.NoError(t, w.Close())
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), "%v", args)
		require.Equal(t, 141, exit.ExitCode(), "%v", args)
		require.Empty(t, stderr.String(), "%v", args)
	}
}
