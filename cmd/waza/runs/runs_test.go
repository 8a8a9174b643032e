package runs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
)

// The commands work without a process of their own, on a state directory without runs.
func TestCommandsWithoutRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for args, want := range map[string]struct {
		stdout, stderr, problem string
	}{
		"":                           {stderr: "waza: no runs are recorded\n"},
		"list --status failed":       {stderr: "waza: no recorded run matches\n"},
		"list --status lost":         {problem: `--status: unknown value "lost"`},
		"show":                       {problem: "waza runs show takes one run, got 0"},
		"show latest":                {problem: "no runs are recorded"},
		"gc":                         {stdout: "nothing to remove\n"},
		"gc --status lost":           {problem: `--status: unknown value "lost"`},
		"rm":                         {problem: "waza runs rm takes one or more runs"},
		"rm 20200101-000000-abcdef":  {problem: "no such run: 20200101-000000-abcdef"},
		"cancel --wait=-1s x":        {problem: "--wait must not be negative, got -1s"},
		"export --format rtf latest": {problem: `--format: unknown format "rtf"`},
		"follow --from 1 latest":     {problem: "--from requires --events"},
		"trust":                      {problem: "waza runs trust takes either runs or --all"},
	} {
		var stdout, stderr bytes.Buffer
		streams := output.Streams{Stdin: strings.NewReader(""), Stdout: output.New(&stdout), Stderr: &stderr}
		command := Command(Options{
			Resume: &cli.Command{Name: "resume"},
			Reader: state.Reader{
				Streams: streams, Runner: func() (*state.Opened, error) { return state.Opener{Streams: streams}.RunnerIn(dir) },
			},
		})
		app := &cli.App{Name: "waza", Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
		err := app.Run(append([]string{"waza", "runs"}, strings.Fields(args)...))
		require.Equal(t, want.stdout, stdout.String(), args)
		require.Equal(t, want.stderr, stderr.String(), args)
		if want.problem == "" {
			require.NoError(t, err, args)
			continue
		}
		require.ErrorContains(t, err, want.problem, args)
		require.Equal(t, exit.Usage, exit.ProblemOf(err).Code, args)
	}
}
