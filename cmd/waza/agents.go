package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/agent"
	"waza/cmd/waza/roster"
	"waza/rpc/gateway/link"
	"waza/runner/executor/remote"
	"waza/runner/journal"
)

func agentsCommand(e *env) *cli.Command {
	return roster.Command(roster.Options{Stdout: e.stdout, Stderr: e.stderr, Connect: func() (remote.Directory, func()) {
		client := serverLink()
		return client, client.Close
	}})
}

// serverLink reaches the server of the state directory, to which it connects when it is
// used first.
func serverLink() *link.Client {
	dir, err := stateDir()
	if err != nil { // runner.New reports it
		dir = os.DevNull
	}
	return link.NewClient(dir)
}

func agentCommand(e *env) *cli.Command {
	return agent.Command(agent.Options{StateDir: stateDir, Logger: e.logger})
}

// stateDir is the state directory as the server and its clients name it.
func stateDir() (string, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}
