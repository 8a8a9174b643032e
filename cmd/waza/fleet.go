package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/fleets"
)

// fleetProgram returns the parts of this program that the fleet commands need.
func (e *env) fleetProgram() fleets.Program {
	return fleets.Program{Stdout: e.stdout, Stderr: e.stderr, Version: buildVersion().Version, StateDir: stateDir, Logger: e.logger}
}

func workerCommand(e *env) *cli.Command { return fleets.WorkerCommand(e.fleetProgram()) }

func fleetCommand(e *env) *cli.Command { return fleets.FleetCommand(e.fleetProgram()) }
