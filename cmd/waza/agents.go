package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/roster"
	"waza/rpc/gateway/link"
	"waza/runner/executor/remote"
	"waza/runner/journal"
)

func agentsCommand(e *env) *cli.Command {
	return roster.Command(roster.Options{Stdout: e.stdout, Stderr: e.stderr, Connect: func() (remote.Directory, func(), error) {
		dir, err := stateDir()
		if err != nil {
			return nil, nil, err
		}
		client := link.NewClient(dir)
		return client, client.Close, nil
	}})
}

// stateDir is the state directory as the server and its clients name it.
func stateDir() (string, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}
