package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

var (
	mcpTalk  = regexp.MustCompile("(?s)```text\n(waza_\\w+) (\\{[^\n]*\\})\n```\n\n```json\n(.*?)```")
	mcpSuite = regexp.MustCompile("(?s)```yaml\n(# capitals/eval.yaml\n.*?)```")
)

// sameEverywhere replaces texts that differ between runs.
func sameEverywhere(s string) string {
	s = regexp.MustCompile(`\b\d{8}-\d{6}\.\d{3}-[0-9a-z]{10}\b`).ReplaceAllString(s, "20261123-093000.123-ab12cd34ef")
	s = regexp.MustCompile(`"started_at":"[^"]*"`).ReplaceAllString(s, `"started_at":"2026-11-23T09:30:00.123Z"`)
	s = regexp.MustCompile(`"at_ms":\d+`).ReplaceAllString(s, `"at_ms":0`)
	return regexp.MustCompile(`"duration_ms":\d+,`).ReplaceAllString(s, "")
}

// TestMCPDocument plays the conversation of docs/mcp.md with the server, and compares the table
// of tools with the server's tools. With -update it writes the answers.
func TestMCPDocument(t *testing.T) {
	t.Parallel()
	const file = "mcp.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	dir := t.TempDir()
	suite := mcpSuite.FindSubmatch(text)
	require.NotNil(t, suite)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "capitals"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "capitals", "eval.yaml"), suite[1], 0o600))

	proctest.DependOnWaza(t)
	cmd := exec.Command("waza", "mcp", "--dir", dir)
	cmd.Env = proctest.Environment(t)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "reader", Version: "1"}, nil).Connect(t.Context(),
		&sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	defer session.Close()

	talks := 0
	got := mcpTalk.ReplaceAllFunc(text, func(block []byte) []byte {
		talks++
		m := mcpTalk.FindSubmatch(block)
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: string(m[1]), Arguments: json.RawMessage(m[2])})
		require.NoError(t, err)
		answer := r.Content[0].(*sdk.TextContent).Text
		require.False(t, r.IsError, answer)
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, []byte(sameEverywhere(answer)), "", "  "))
		head := bytes.TrimSuffix(block, slices.Concat(m[3], []byte("```")))
		return slices.Concat(head, indented.Bytes(), []byte("\n```"))
	})
	require.Equal(t, 4, talks)
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	} else if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("the conversation differs (-docs +server); make docs rewrites it:\n%s", diff)
	}

	_, table, _ := strings.Cut(string(text), "\n## Tools\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for tool, err := range session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		require.Contains(t, table, "\n| `"+tool.Name+"` | ")
		table = strings.Replace(table, "\n| `"+tool.Name+"` | ", "\n", 1)
	}
	require.NotContains(t, table, "\n| `waza_", "the table lists tools that do not exist")
}
