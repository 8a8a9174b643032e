package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/secret"
)

func write(t *testing.T, mode os.FileMode, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode)) // whatever the umask
	return path
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	const good = "0123456789abcdef"
	token, err := secret.TokenFile("--token-file", write(t, 0o600, " "+good+"\n"), 16)
	require.NoError(t, err)
	require.Equal(t, good, token)

	for name, c := range map[string]struct {
		path string
		says string
		hint string
	}{
		"others read it": {write(t, 0o640, good), "has mode 0640, other users must not have access to it", "chmod 600 "},
		"empty":          {write(t, 0o600, "\n"), "contains no token", "a token is"},
		"short":          {write(t, 0o600, good[1:]), "the token must have at least 16 characters, got 15", "openssl"},
		"long":           {write(t, 0o600, strings.Repeat("x", 5000)), "more than 4096 bytes", ""},
		"absent":         {filepath.Join(t.TempDir(), "no"), "no such file", ""},
	} {
		token, err := secret.TokenFile("--token-file", c.path, 16)
		var problem *exit.Problem
		require.ErrorAs(t, err, &problem, name)
		require.Equal(t, exit.Usage, problem.Code, name)
		require.Contains(t, problem.Error(), c.says, name)
		require.True(t, strings.HasPrefix(problem.Hint, c.hint), name)
		require.NotContains(t, problem.Error(), good[1:], name)
		require.Empty(t, token, name)
	}
	_, err = secret.ReadFile(write(t, 0o604, good), 100)
	var mode *secret.ModeError
	require.True(t, errors.As(err, &mode))
}

// Agents and graders must not inherit a secret.
func TestTakeRemovesTheVariable(t *testing.T) {
	t.Setenv("WAZA_TEST_SECRET", "hidden")
	require.Equal(t, "hidden", secret.Unset("WAZA_TEST_SECRET"))
	_, there := os.LookupEnv("WAZA_TEST_SECRET")
	require.False(t, there)
}
