//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// TestRaces runs testdata/races.txtar with a waza that was built with the race detector: a run of
// this process, of workers, of a server with an agent, and of a daemon. All other tests that start
// waza use a release build. make race runs this test, and the packages that share memory between
// goroutines, with the race detector.
func TestRaces(t *testing.T) {
	t.Parallel()
	if os.Getenv("WAZA_TEST_RACES") == "" {
		t.Skip("builds waza with the race detector: make race")
	}
	dir := t.TempDir()
	require.NoError(t, proctest.BuildWaza(filepath.Join(dir, "waza"), "-race"))
	reports := t.TempDir()
	params := scripts("")
	params.Files = []string{"testdata/races.txtar"}
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		e.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		e.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(reports, "race"))
		e.Setenv("AGENTS", proctest.FreeAddress(t))
		for _, door := range []string{"JOBS", "BROWSER", "ROUTER"} {
			e.Setenv("WAZA_SERVE_"+door+"_LISTEN", proctest.FreeAddress(t))
		}
		e.Setenv("WAZA_SERVE_ROUTER_DESKTOP", "false")
		return setup(e)
	}
	t.Run("smoke", func(t *testing.T) { testscript.Run(t, params) })
	found, err := filepath.Glob(filepath.Join(reports, "*"))
	require.NoError(t, err)
	for _, file := range found {
		t.Error(reportAt(t, file))
	}
}
