package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/agent"
	"waza/cmd/waza/agents"
	"waza/rpc/gateway/link"
	"waza/runner/executor/remote"
	"waza/runner/journal"
)

func (e *env) agentsCommand() *cli.Command {
	return agents.Command(agents.Options{Stdout: e.stdout, Stderr: e.stderr, Connect: func() (remote.Directory, func()) {
		client := serverLink()
		return client, client.Close
	}})
}

// serverLink returns a client of the server of the state directory. The client connects when it
// is first used.
func serverLink() *link.Client {
	dir, err := stateDir()
	if err != nil { // runner.New reports the error
		dir = os.DevNull
	}
	return link.NewClient(dir)
}

func (e *env) agentCommand() *cli.Command {
	return agent.Command(agent.Options{StateDir: stateDir, Logger: e.logger})
}

// stateDir returns the path of the state directory that the server and its clients use.
func stateDir() (string, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}
