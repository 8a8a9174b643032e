package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/sending"
	"waza/runner/routing"
)

func sendCommand(e *env) *cli.Command {
	return sending.Command(sending.Options{Stdin: e.stdin, Stdout: e.stdout, Connect: func() (routing.Messenger, func()) {
		client := serverLink()
		return client.Messenger(), client.Close
	}})
}
