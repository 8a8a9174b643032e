package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/output"
	"waza/rpc/gateway/link"
	"waza/runner/executor/remote"
)

func dashboardFlag(category string) cli.Flag {
	return &cli.BoolFlag{Name: "dashboard", Category: category, Usage: "print a link to the run on the dashboard of waza serve to stderr"}
}

// linkDashboard prints a link that shows a run while it happens. Without a server it prints a
// warning, and the run continues.
func (s *runSession) linkDashboard(runID string) {
	at, err := func() (string, error) {
		dir, err := stateDir()
		if err != nil {
			return "", err
		}
		client := link.NewClient(dir)
		defer client.Close()
		return client.Dashboard(s.ctx)
	}()
	switch {
	case errors.Is(err, remote.ErrNoServer):
		fmt.Fprintln(s.stderr, "waza: --dashboard: waza serve is not running; start it in another terminal to see runs in a browser")
	case err != nil:
		fmt.Fprintf(s.stderr, "waza: --dashboard: %s\n", output.Clean(err.Error()))
	default:
		fmt.Fprintf(s.stderr, "Dashboard: %s&run=%s\n", at, url.QueryEscape(runID))
	}
}
