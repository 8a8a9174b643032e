package run

import (
	"errors"
	"fmt"
	"net/url"

	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/runner/executor"
)

// linkDashboard prints a link that shows a run while it happens. Without a server it prints a
// warning, and the run continues.
func (s *session) linkDashboard(runID string) {
	server := state.Server()
	defer server.Close()
	at, err := server.Dashboard(s.ctx)
	switch {
	case errors.Is(err, executor.ErrNoServer):
		fmt.Fprintln(s.Stderr, "waza: --dashboard: waza serve is not running; start it in another terminal to see runs in a browser")
	case err != nil:
		fmt.Fprintf(s.Stderr, "waza: --dashboard: %s\n", output.Clean(err.Error()))
	default:
		fmt.Fprintf(s.Stderr, "Dashboard: %s&run=%s\n", at, url.QueryEscape(runID))
	}
}
