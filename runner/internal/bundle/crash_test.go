package bundle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// helperEnv makes the test binary a worker that unpacks a bundle. Its arguments are the store,
// the name, the cache and, to stop halfway, "half".
const helperEnv = "WAZA_TEST_UNPACK"

// unpackAndWait unpacks a bundle, prints a line and waits to be killed.
func unpackAndWait(args []string) {
	s := InDir(args[0])
	if args[3] == "half" {
		s = halfway{s, args[1]}
	}
	if _, err := Unpack(context.Background(), s, args[1], args[2], Limits{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("unpacked")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// halfway is a store that returns the manifest but no files.
type halfway struct {
	Store
	manifest string
}

func (h halfway) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == h.manifest {
		return h.Store.Get(ctx, name)
	}
	fmt.Println("halfway")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil, ErrMissing
}

// helper starts such a worker, and returns a function that kills it.
func helper(t *testing.T, want string, args ...string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+strings.Join(args, "\n"))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(line))
	return kill
}

// A killed worker does not block a bundle for others, and leaves no files permanently.
func TestUnpackKilled(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store, cache := InDir(t.TempDir()), filepath.Join(t.TempDir(), "cache")
	packed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	args := []string{store.(directory).dir, packed.Hash(), cache}

	kill := helper(t, "halfway", append(args, "half")...)
	require.NoDirExists(t, filepath.Join(cache, packed.Hash()), "the bundle appears only when complete")
	require.NoError(t, Trim(cache, 0))
	require.Equal(t, 1, temporary(t, cache), "a bundle that is being unpacked stays")
	kill()

	kill = helper(t, "unpacked", append(args, "")...)
	other := helper(t, "unpacked", append(args, "")...)
	kill()
	require.NoError(t, Trim(cache, 1))
	require.DirExists(t, filepath.Join(cache, packed.Hash()), "the other one uses it")
	other()
	require.NoError(t, Trim(cache, 1))
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, list)
}

// temporary returns the number of bundles that are being unpacked.
func temporary(t *testing.T, cache string) (n int) {
	t.Helper()
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	for _, e := range list {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			n++
		}
	}
	return n
}
