package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/browseragent"
)

func (e *env) browserAgentCommand() *cli.Command {
	return browseragent.Command(browseragent.Options{StateDir: stateDir, Logger: e.logger})
}
