package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/compare"
	"waza/cmd/waza/exit"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

func (e *env) compareCommand() *cli.Command {
	return compare.Command(compare.Options{Stdout: e.stdout, Stderr: e.stderr, Runner: e.newRunner, FindRun: findRun, Bisect: bisectFlag()})
}

// findRun finds a run like [catalog.Catalog.Find], in the project of the current directory.
func findRun(rn *runner.Runner, ref string) (record.Handle, error) {
	h, err := rn.Catalog().Find(".", ref)
	if !errors.Is(err, record.ErrRunNotFound) || ref != catalog.LatestRun {
		return h, err
	}
	if infos, lerr := rn.Catalog().List(1); lerr == nil && len(infos) == 0 {
		return nil, exit.Usagef("waza run SUITE records one", "no runs are recorded")
	}
	return nil, err
}
