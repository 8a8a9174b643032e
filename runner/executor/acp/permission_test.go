//go:build unix

package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/record"
)

// TestPermissions checks the answer of each policy to requests of an agent.
func TestPermissions(t *testing.T) {
	t.Parallel()
	agents := map[string]*fixture{}
	for _, policy := range []string{"allow", "deny", "workspace"} {
		agents[policy] = open(t, setup{config: "  mcp_servers: {weather: {command: weather-mcp}}\n  permissions: " + policy + "\n"})
	}
	for _, c := range []struct {
		policy, verb, call string
		allowed            bool
		reason             string
	}{
		{"workspace", "ask", `{"toolCallId":"1","kind":"execute","title":"ls","rawInput":{"command":"ls"}}`, true, "in the workspace"},
		{
			"workspace", "ask",
			`{"toolCallId":"1","kind":"execute","title":"ls","rawInput":{"command":"ls","cwd":"$CWD/sub"}}`, true,
			"in the workspace",
		},
		{
			"workspace", "ask",
			`{"toolCallId":"1","kind":"execute","title":"ls","rawInput":{"command":"ls","cwd":"/"}}`, false,
			"/ is outside the workspace",
		},
		{
			"workspace", "ask",
			`{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"$CWD/a/new.txt"}]}`, true,
			"files below the workspace",
		},
		{
			"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w","rawInput":{"file_path":"rel.txt"}}`,
			true, "files below the workspace",
		},
		{
			"workspace", "ask",
			`{"toolCallId":"1","kind":"edit","title":"w","rawInput":{"edits":[{"filePath":"/etc/passwd"}]}}`, false,
			"/etc/passwd is outside",
		},
		{
			"workspace", "ask",
			`{"toolCallId":"1","kind":"edit","title":"w","content":[{"type":"diff","path":"$CWD/../x","newText":"y"}]}`,
			false, "outside",
		},
		{"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"$CWD/out/x"}]}`, false, "outside"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"$CWD/dangling"}]}`, false, "outside"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"$CWDx"}]}`, false, "outside"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"~/x"}]}`, false, "outside"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"edit","title":"w"}`, false, "the call names no file"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"fetch","title":"w","rawInput":{"url":"http://x"}}`, false, "neither"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"other","title":"skill","rawInput":{"name":"explainer"}}`, true, "a skill"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"other","title":"weather_today","rawInput":{}}`, true, "an MCP server of the suite"},
		{"workspace", "ask", `{"toolCallId":"1","kind":"other","title":"weatherman","rawInput":{}}`, false, "neither"},
		{"workspace", "ask", `{}`, false, "neither"},
		{"workspace", "ask-always", `{"toolCallId":"1","kind":"execute","title":"ls"}`, false, "no option to allow the call only once"},
		{"deny", "ask", `{"toolCallId":"1","kind":"execute","title":"ls"}`, false, "permissions: deny"},
		{"allow", "ask", `{"toolCallId":"1","kind":"edit","title":"w","locations":[{"path":"/etc/passwd"}]}`, true, "permissions: allow"},
		{"allow", "ask-always", `{"toolCallId":"1","kind":"execute","title":"ls"}`, true, "permissions: allow"},
	} {
		f := agents[c.policy]
		tr := f.trial(t, c.verb+" "+c.call)
		dir, _ := tr.Dir()
		require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
		require.NoError(t, os.Symlink("/nowhere/at/all", filepath.Join(dir, "dangling")))
		out, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		choice := "r"
		if c.allowed {
			choice = map[string]string{"ask": "o", "ask-always": "a"}[c.verb]
		}
		require.JSONEq(t, fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, choice), out.Output, c.call)
		p := permissions(tr)
		require.Len(t, p, 1)
		require.Equal(t, c.allowed, p[0].Allowed, c.call)
		require.Contains(t, p[0].Reason, c.reason)
	}
}

func permissions(tr *executor.Trial) []*record.Permission {
	var all []*record.Permission
	for _, e := range entries(tr) {
		if e.Type == record.EntryPermission {
			all = append(all, e.Permission)
		}
	}
	return all
}

// A request can contain less than its call. Both must be allowed.
func TestPermissionOfKnownCall(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	tr := f.trial(t, `tool {"toolCallId":"1","kind":"edit","title":"write","rawInput":{"path":"/etc/passwd"}}
ask {"toolCallId":"1","title":"write"}`)
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	p := permissions(tr)
	require.Len(t, p, 1)
	require.False(t, p[0].Allowed)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	secret := filepath.Join(t.TempDir(), "secret.txt")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	tr := f.trial(t, "read a.txt\nwrite new/b.txt\nread "+secret+"\nwrite "+secret+"\nread out\nread missing\nread .")
	dir, _ := tr.Dir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "out")))
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	var answers strings.Builder
	var refused []*record.Permission
	for _, e := range entries(tr)[1:] {
		answers.WriteString(e.Text)
		if e.Permission != nil {
			refused = append(refused, e.Permission)
		}
	}
	require.Contains(t, answers.String(), `{"content":"one\ntwo\n"}`)
	require.NotContains(t, answers.String(), `"secret"`)
	require.Contains(t, answers.String(), "must be a regular file")
	b, err := os.ReadFile(filepath.Join(dir, "new", "b.txt"))
	require.NoError(t, err)
	require.Equal(t, "written", string(b))
	b, err = os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))
	require.Len(t, refused, 3)
	for _, p := range refused {
		require.False(t, p.Allowed)
		require.Contains(t, p.Reason, "outside the workspace")
	}

	f = open(t, setup{config: "  permissions: deny\n"})
	require.Contains(t, f.do(t, "write a.txt"), "not permitted")
	f = open(t, setup{config: "  permissions: allow\n"})
	require.Contains(t, f.do(t, "read "+secret), `"secret"`)
}

// A judging agent can call only the tools for judging. All other calls are refused, whatever
// their titles.
func TestJudgesMayOnlyJudge(t *testing.T) {
	t.Parallel()
	f := openJudge(t)
	for _, c := range []struct {
		call    string
		allowed bool
	}{
		{`{"toolCallId":"1","kind":"other","title":"submit_verdict","rawInput":{"score":1}}`, true},
		{`{"toolCallId":"1","kind":"other","title":"waza_judge_submit_verdict","rawInput":{"score":1}}`, true},
		{`{"toolCallId":"1","kind":"other","title":"mcp__waza_judge__submit_verdict"}`, true},
		{`{"toolCallId":"2","kind":"other","title":"a text of the model"}`, false},
		{`{"toolCallId":"1","kind":"execute","title":"submit_verdict","rawInput":{"command":"ls"}}`, false},
		{`{"toolCallId":"1","kind":"execute","title":"waza_judge_submit_verdict","rawInput":{"command":"ls"}}`, false},
		{`{"toolCallId":"1","kind":"read","title":"waza_judge_x","locations":[{"path":"$CWD/a"}]}`, false},
		{`{"toolCallId":"1","kind":"edit","title":"write","locations":[{"path":"$CWD/a"}]}`, false},
		{`{"toolCallId":"1","kind":"other","title":"weather_today"}`, false},
		{`{"toolCallId":"1","kind":"other","title":"skill","rawInput":{"name":"explainer"}}`, false},
		{`{}`, false},
	} {
		tr := f.trial(t, "ask "+c.call)
		tr.Servers = []executor.Server{{Name: "waza_judge", Command: "/bin/true", Tools: []string{"submit_verdict"}}}
		_, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		p := permissions(tr)
		require.Len(t, p, 1)
		require.Equal(t, c.allowed, p[0].Allowed, c.call)
	}
}

func openJudge(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza.yaml"),
		[]byte("agents: {house: {command: '"+exe+"', env: {FAKE_AGENT: '1'}}}\n"), 0o600))
	suite := load(t, dir, "  executor: acp\n  agent: house\n  mcp_servers: {weather: {command: weather-mcp}}\n")
	require.NoError(t, acp.Judges{}.Check(suite, "house"))
	require.ErrorContains(t, acp.Judges{}.Check(suite, "hous"), `did you mean "house"?`)
	e, err := acp.Judges{}.Open(executor.Settings{Suite: suite, Workers: 1, Temp: t.TempDir()}, "house")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return &fixture{suite: suite, exec: e}
}
