package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/complete"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
)

func newTestApp() *cli.App {
	var out, err bytes.Buffer
	return newApp(output.Streams{Stdin: strings.NewReader(""), Stdout: output.New(&out), Stderr: &err}, nil)
}

// A start prepares only its command, unless it needs all of them.
func TestNamedCommand(t *testing.T) {
	t.Parallel()
	all := len(newTestApp().Commands)
	for in, want := range map[string]int{
		"waza": all, "waza jsonrpc": 1, "waza run --help": 1, "waza help run": all, "waza complete r": all,
		"waza --help": all, "waza rn": all, "waza --version run": all,
	} {
		app := newApp(output.Streams{Stdout: output.New(io.Discard)}, strings.Fields(in))
		require.Len(t, app.Commands, want, in)
	}
}

func TestArrange(t *testing.T) {
	t.Parallel()
	app := newTestApp()
	for in, want := range map[string]string{
		"waza":                              "waza",
		"waza run":                          "waza run",
		"waza run a b --json":               "waza run --json -- a b",
		"waza run a --task x b --trials=3":  "waza run --task x --trials=3 -- a b",
		"waza run -t x --task y a":          "waza run -t x --task y -- a",
		"waza run -- --json":                "waza run -- --json",
		"waza run a -- b --json":            "waza run -- a b --json",
		"waza run -":                        "waza run -- -",
		"waza run --output - a":             "waza run --output - -- a",
		"waza run --task --json a":          "waza run --task --json -- a",
		"waza runs show --json id":          "waza runs show --json -- id",
		"waza runs --json list":             "waza runs --json list",
		"waza complete -- run --bogus":      "waza complete -- run --bogus",
		"waza nonsense more":                "waza -- nonsense more",
		"waza --help":                       "waza --help",
		"waza run run":                      "waza run -- run",
		"waza tasks runs":                   "waza tasks -- runs",
		"waza validate evals --strict more": "waza validate --strict -- evals more",
	} {
		got, err := flags.Arrange(app, strings.Fields(in))
		require.NoError(t, err, in)
		require.Equal(t, want, strings.Join(got, " "), in)
	}
	got, err := flags.Arrange(app, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"waza"}, got)
}

func TestArrangeRefuses(t *testing.T) {
	t.Parallel()
	app := newTestApp()
	for in, want := range map[string][2]string{
		"waza run --taks x":      {"waza run: unknown flag --taks", "did you mean --task?"},
		"waza run --zzzzzz=1":    {"waza run: unknown flag --zzzzzz", "waza run --help lists the flags"},
		"waza run --task":        {"--task needs a value", "waza run --help describes it"},
		"waza run a --trials":    {"--trials needs a value", "waza run --help describes it"},
		"waza runs show --jsn x": {"waza runs show: unknown flag --jsn", "did you mean --json?"},
		"waza -x":                {"waza: unknown flag -x", "waza --help lists the flags"},
	} {
		_, err := flags.Arrange(app, strings.Fields(in))
		pr := exit.ProblemOf(err)
		require.Equal(t, exit.Usage, pr.Code)
		require.Equal(t, want, [2]string{pr.Error(), pr.Hint}, in)
	}
}

// For any arguments, the program reports the error and does not panic.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"run --task", "validate\x00--json", "help\x00help", "schema\x00--help\x00x", "runs\x00show\x00a\x00b",
		"complete\x00--\x00run\x00--executor=", "\x00\x00", "tasks\x00-",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args := append([]string{"waza"}, strings.Split(s, "\x00")...)
		switch args[1] {
		case "help", "schema", "version", "completion", "complete":
		default: // the other codes mean more than printing
			args = slices.Insert(args, 2, "--help")
		}
		t.Setenv("WAZA_STATE", t.TempDir())
		var out, err bytes.Buffer
		code := execute(context.Background(), args, strings.NewReader(""), &out, &err)
		require.Contains(t, []int{exit.Passed, exit.Usage}, code, "%q: %s", args, err.String())
		if code == exit.Usage {
			require.NotEmpty(t, err.String()+out.String(), "%q is refused without a word", args)
		}
	})
}

// eachCommand calls f for every command that help lists, and its subcommands.
func eachCommand(commands []*cli.Command, f func(*cli.Command)) {
	for _, c := range commands {
		if !c.Hidden {
			f(c)
			eachCommand(c.Subcommands, f)
		}
	}
}

func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	eachCommand(newTestApp().Commands, func(c *cli.Command) {
		require.NotEmpty(t, c.Usage, c.HelpName)
		if len(c.Subcommands) == 0 && c.HelpName != "waza sandbox run" { // others only have subcommands, or pass the output of a command on
			require.NotNil(t, flags.Find(c.Flags, "json"), "%s has no --json", c.HelpName)
		}
		if strings.Count(c.HelpName, " ") == 1 {
			require.Contains(t, c.Description, "Examples:\n", c.HelpName)
			require.Contains(t, help.Groups, c.Category, c.HelpName)
		}
		for _, f := range c.Flags {
			if help.Hidden(f) {
				continue
			}
			h := help.DescribeFlag(f)
			require.NotEmpty(t, h.Usage, "%s %s", c.HelpName, h.Flag)
			require.NotEmpty(t, h.Default, "%s %s says no default", c.HelpName, h.Flag)
		}
	})
}

func TestComplete(t *testing.T) {
	t.Setenv("WAZA_STATE", t.TempDir())
	app := newTestApp()
	for in, want := range map[string]string{
		"v":                     "validate version",
		"--":                    "--version --help",
		"run --fa":              "--fail-fast --fail-on",
		"run --executor mo":     "mock",
		"run --executor = mo":   "mock",
		"run --executor=mo":     "mock",
		"run --output x --j":    "--judge-model --judge-agent --json",
		"run e":                 "",
		"run --task ":           "",
		"schema t":              "task trigger_tests",
		"schema s":              "suite serve",
		"completion ":           "bash zsh fish powershell",
		"completion bash ":      "",
		"help sche":             "schema",
		"runs sh":               "show",
		"runs show ":            "",
		"jsonrpc --log-level d": "debug",
		"jsonrpc --fsync a":     "always",
		"run -- --js":           "",
		"serve --jobs ":         "off",
		"agents ":               "list show kick watch",
		"nonsense ":             "",
		"guar":                  "",
		"tasks x --":            "--task --tag --param --json --help",
	} {
		got := complete.Words(app, strings.Split(in, " "))
		require.Equal(t, want, strings.Join(got, " "), "%q", in)
	}
	require.Contains(t, complete.Words(app, nil), "run")
	require.NotContains(t, complete.Words(app, nil), "guard")
}
