package plugineval

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A path is no pattern.
func TestIsPattern(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"/x/": true, "/a.*b/i": true, "/x/gims": true, `/a\/b/`: true, "/[/]x/": true, `/[\]/]/u`: true,
		"/srv/guy": false, "/usr/local/": false, "/x/ii": false, "/x/y": false, "/tmp/a": false, "//": false, "/": false, "": false, "x/y/": false,
		"/a/b/i": false, "/[/": false,
	} {
		require.Equal(t, want, isPattern(said), said)
	}
}
