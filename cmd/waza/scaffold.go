package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/scaffold"
	"waza/eval"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
)

func (e *env) scaffoldCommands() []*cli.Command {
	o := scaffold.Options{Stdout: e.stdout, Stderr: e.stderr, NewRunner: e.newRunner, Commit: buildVersion().commit(), Vocabulary: func() *eval.Vocabulary {
		return &eval.Vocabulary{Executors: plan.Executors.Kinds(), Graders: builtin.Graders.Kinds()}
	}}
	return []*cli.Command{scaffold.Init(o), scaffold.New(o), scaffold.Suggest(o)}
}
