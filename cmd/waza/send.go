package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/send"
	"waza/runner/routing"
)

func (e *env) sendCommand() *cli.Command {
	return send.Command(send.Options{Stdin: e.stdin, Stdout: e.stdout, Connect: func() (routing.Messenger, func()) {
		client := serverLink()
		return client.Messenger(), client.Close
	}})
}
