package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/browseragent"
)

func browserAgentCommand(e *env) *cli.Command {
	return browseragent.Command(browseragent.Options{StateDir: stateDir, Logger: e.logger})
}
