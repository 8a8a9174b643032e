package fleettest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// SecretFile writes a file that only this user can read, and returns its path.
func SecretFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// NKey creates a user with an NKey. It returns the file with the seed, and the public key for
// server.Options.Nkeys.
func NKey(t testing.TB) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	return SecretFile(t, seed), public
}
