package main

import (
	"github.com/urfave/cli/v2"

	"waza/runner"
	"waza/runner/journal"
)

// fsyncFlag is a flag of the commands that record runs.
func fsyncFlag(category string) cli.Flag {
	names := journal.SyncNames()
	return &cli.StringFlag{
		Name: "fsync", Category: category, Value: names[0], DefaultText: names[0],
		Usage: "bring the record to the disk by `POLICY`: group puts 20 ms of work at risk from a power failure, always none, never leaves it to the system",
	}
}

// recordingRunner makes the runner of a command that has that flag.
func (p *program) recordingRunner(c *cli.Context) (*runner.Runner, error) {
	return newRecordingRunner(c, p.runnerOptions())
}

func newRecordingRunner(c *cli.Context, o runner.Options) (*runner.Runner, error) {
	if err := oneOf("fsync", c.String("fsync"), journal.SyncNames()...); err != nil {
		return nil, err
	}
	var err error
	if o.Sync, err = journal.ParseSync(c.String("fsync")); err != nil {
		return nil, err
	}
	return runner.New(o)
}
