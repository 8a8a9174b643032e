package checkout_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/checkout"
)

// A commit is fetched by its id, a branch, a tag or HEAD, without hooks and history of the source.
func TestFetch(t *testing.T) {
	t.Parallel()
	source := repository(t)
	write(t, source, ".git/hooks/post-checkout", "#!/bin/sh\ntouch "+filepath.Join(source, "hooked")+"\n")
	first, last := run(t, source, "rev-parse", "v1"), run(t, source, "rev-parse", "main")
	url := "file://" + filepath.ToSlash(source)
	for name, want := range map[string]string{
		"": last, "head": last, "HEAD": last, "main": last, "feature": first, "v1": first, first: first, last: last, first[:10]: first,
	} {
		dir := filepath.Join(t.TempDir(), "to")
		id, err := checkout.Fetch(t.Context(), url, name, dir)
		require.NoError(t, err, name)
		require.Equal(t, want, id, name)
		require.Equal(t, map[bool]string{true: "one", false: "two"}[want == first], read(t, dir, "a.txt"), name)
	}
	require.NoFileExists(t, filepath.Join(source, "hooked"))
}

// Faults name the repository without its password, and no address or name is an option or a program.
func TestFetchFaults(t *testing.T) {
	t.Parallel()
	source := repository(t)
	for _, c := range []struct{ url, name, want string }{
		{"file://" + filepath.ToSlash(source), "none", `has no commit "none"`},
		{"file://" + filepath.ToSlash(source), "--upload-pack=x", "is no commit id, branch or tag"},
		{"file://" + filepath.ToSlash(source), "main:main", "is no commit id, branch or tag"},
		{"file:///none/secret", "", "git cannot fetch"},
		{"https://user:hunter2@127.0.0.1:1/x.git", "", "https://***@127.0.0.1:1/x.git"},
		{"ext::sh -c touch% x", "", "is no address of a repository"},
		{"--upload-pack=x", "", "is no address of a repository"},
		{source, "", "is no address of a repository"},
		{"", "", "is no address of a repository"},
	} {
		_, err := checkout.Fetch(t.Context(), c.url, c.name, filepath.Join(t.TempDir(), "to"))
		require.ErrorContains(t, err, c.want, "%s %s", c.url, c.name)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
