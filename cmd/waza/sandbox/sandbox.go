// Package sandbox implements `waza sandbox`, which shows the sandboxes that this machine has and
// runs a command in one. Call [Command].
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Options holds the streams of the command.
type Options struct {
	output.Streams
}

// Command returns waza sandbox with its subcommands.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "sandbox", Category: help.More,
		Usage: "show the sandboxes of this machine, or run a command in one",
		Description: `Programs of trials run in the strongest sandbox that the machine has, unless the suite says
otherwise (config.sandbox). Without a subcommand, waza lists the tiers, and why one is missing.

Examples:
  waza sandbox
  waza sandbox run -- ./build.sh
  waza sandbox run -- python3 solution.py < input.txt`,
		Action: flags.Group(o.show),
		Subcommands: []*cli.Command{{
			Name: "run", Usage: "run a command in a sandbox", ArgsUsage: "-- COMMAND [ARGUMENT...]",
			Description: `The command sees the system read-only, and can change the workspace of the trial, the current
directory and a directory for temporary files. It sees neither the suite nor other trials.
A grader runs code of the agent with it: the command cannot give a verdict, neither on the
grader's standard output, where its output goes to standard error instead, nor on
WAZA_RESULT_FD.

Exit codes: those of the command, 2 for wrong usage, 3 when there is no sandbox or the
command cannot be started.`,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "network", Usage: "let the command use the network"},
			},
			Action: o.run,
		}},
	}
}

// show lists the tiers.
func (o Options) show(*cli.Context) error {
	m := sandbox.Detect()
	fmt.Fprintln(o.Stdout, m.Describe())
	for _, missing := range m.Missing {
		fmt.Fprintln(o.Stdout, "missing:", missing)
	}
	return nil
}

// run runs a command in the strongest sandbox.
func (o Options) run(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return exit.Usagef("write the command after --: waza sandbox run -- ./test.sh", "no command")
	}
	sandbox.CloseInherited() // such as WAZA_RESULT_FD
	tier := sandbox.Detect().Tiers()[0]
	if tier == record.TierNone {
		return fmt.Errorf("this machine has no sandbox:\n%s", sandbox.Detect().Describe())
	}
	temp, err := os.MkdirTemp("", "waza-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	boxes, err := sandbox.Open(tier, sandbox.Policy{Hidden: hidden(temp)})
	if err != nil {
		return err
	}
	defer boxes.Close()
	env := append(without(os.Environ(), "WAZA_RESULT_FD", "WAZA_SUITE_DIR", sandbox.OutputVariable), "TMPDIR="+temp)
	write := []string{dir, temp}
	if workspace := os.Getenv("WAZA_WORKSPACE_DIR"); workspace != "" {
		write = append(write, workspace)
	}
	stdout := io.Writer(o.Stdout)
	if proc.OutputID(os.Stdout) == os.Getenv(sandbox.OutputVariable) {
		stdout = o.Stderr
	}
	err = proc.Run(c.Context, proc.Command{
		Args: args, Dir: dir, Env: env, Stdin: o.Stdin, Stdout: stdout, Stderr: o.Stderr,
		Sandbox: boxes.For(sandbox.View{Env: env, Write: write, Isolated: !c.Bool("network")}),
	})
	return codeOf(c.Context, err)
}

// hidden returns the directories that a command must not see: the suite, and the temporary files
// of the program that calls waza.
func hidden(temp string) []string {
	dirs := []string{filepath.Join(filepath.Dir(temp), "waza-hidden")}
	if dir := os.Getenv("WAZA_SUITE_DIR"); dir != "" {
		dirs = append(dirs, dir)
	}
	return dirs
}

// without returns an environment without some variables.
func without(env []string, names ...string) []string {
	var list []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		keep := true
		for _, n := range names {
			keep = keep && name != n
		}
		if keep {
			list = append(list, kv)
		}
	}
	return list
}

// codeOf makes the exit code of a command that of waza.
func codeOf(ctx context.Context, err error) error {
	var ended *proc.ExitError
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &ended) && ended.Code > 0:
		return exit.With(ended.Code)
	}
	return err
}
