package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/help"
)

// TestCommandLineDocument compares docs/cli.md with the commands. With -update, which make docs uses, it
// writes the page. The tests of docs compare all other generated documents.
func TestCommandLineDocument(t *testing.T) {
	t.Parallel()
	const page = "../../docs/cli.md"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(cliDocument()), 0o644))
		return
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err, "make docs writes it")
	if diff := cmp.Diff(strings.Split(string(have), "\n"), strings.Split(cliDocument(), "\n")); diff != "" {
		t.Errorf("docs/cli.md lags behind the code: run make docs (-docs +code)\n%s", diff)
	}
}

func cliDocument() string {
	var b strings.Builder
	app := newTestApp()
	b.WriteString("# The command line\n\nAfter this page you can find every command and flag of waza: the output " +
		"of `waza help` and\n`waza COMMAND --help`.\n\n## waza\n\n```text\n")
	help.WriteApp(&b, app)
	b.WriteString("```\n")
	eachCommand(app.Commands, func(c *cli.Command) {
		fmt.Fprintf(&b, "\n##%s %s\n\n```text\n", strings.Repeat("#", strings.Count(c.HelpName, " ")-1), c.HelpName)
		help.WriteCommand(&b, c)
		b.WriteString("```\n")
	})
	b.WriteString(`
## For programs

With ` + "`--json`" + ` stdout contains JSON and nothing else. If a suite could not be run or checked, its entry in the document
contains the error. A command that failed completely leaves stdout empty. Messages for people go to stderr as text, and the
exit code reports the outcome.

## The environment

| variable | meaning |
|---|---|
| ` + "`WAZA_STATE`" + ` | the state directory, which contains the recorded runs; the default is waza below ` +
		"`$XDG_STATE_HOME` or `~/.local/state`" + ` |
| ` + "`WAZA_AGENT_KEY`" + ` | the key that agents present to ` + "`waza serve`" + ` |
| ` + "`WAZA_SERVE_…`" + ` | keys of the configuration of ` + "`waza serve`" + `, see [configuration.md](configuration.md) |
| ` + "`NO_COLOR`" + ` | if not empty: no colors |
| ` + "`CLICOLOR_FORCE`" + ` | if neither empty nor 0: colors even without a terminal, unless NO_COLOR forbids them |
| ` + "`TERM`" + ` | dumb: no colors, and plain lines in place of the live view |
`)
	return b.String()
}
