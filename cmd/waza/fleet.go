package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/fleet"
)

// fleetProgram returns the parts of this program that the fleet commands need.
func (e *env) fleetProgram() fleet.Program {
	return fleet.Program{Stdout: e.stdout, Stderr: e.stderr, Version: buildVersion().Version, StateDir: stateDir, Logger: e.logger}
}

func (e *env) workerCommand() *cli.Command { return fleet.WorkerCommand(e.fleetProgram()) }

func (e *env) fleetCommand() *cli.Command { return fleet.FleetCommand(e.fleetProgram()) }
