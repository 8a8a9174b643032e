package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttackTool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(`
name: weak
graders: [{name: polite, type: text, config: {contains: [please]}}]
tasks:
  - {id: echo, prompt: Say please., solution: {output: "please, Ada"}}
  - {id: sound, prompt: Be polite.}
`), 0o600))
	c := client(t, newTestServer(t, dir))
	var r attackReport
	require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_attack", map[string]any{"path": "eval.yaml", "agents": []string{"nop", "echo", "oracle"}})), &r))
	require.False(t, r.Sound)
	require.Len(t, r.Faults, 1)
	require.Equal(t, "agent echo fools grader polite in task echo", r.Faults[0].Message)
	require.NotEmpty(t, r.Faults[0].Remedy)
	require.Equal(t, []string{"echo: fail nop; pass echo oracle", "sound: fail nop echo; no solution oracle"}, r.Tasks)
}
