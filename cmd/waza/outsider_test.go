//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox"
)

// outsider is a program that prints the answers of daemons at a TCP address and at a unix socket, and
// that of a door.
const outsider = `
import socket, sys, urllib.request

def connect(address):
    if "/" in address:
        s = socket.socket(socket.AF_UNIX)
        s.connect(address)
        return s
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)))

def answer(s):
    try:
        return s.recv(4096).decode() or "refused"
    except ConnectionError:
        return "refused"

def ask(s):
    try:
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    except ConnectionError:
        pass
    return s

tcp, unix, agents = sys.argv[1:]
print("tcp", answer(ask(connect(tcp))))
print("unix", answer(ask(connect(unix))))

try:
    urllib.request.urlopen("http://" + agents)
except urllib.error.HTTPError as e:
    print("door", e.code, end="")
`

// An agent with an open network asked a daemon of the same machine to run programs, and so left its
// sandbox.
func TestAttackDaemonFromSandbox(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	if err := sandbox.Detect().Strict(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "w") // a short path for the socket, which is not hidden
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	daemon := startWaza(t, environment(t), "jsonrpc", "--tcp", "127.0.0.1:0", "--socket", socket)
	tcp := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(daemon.says(t, "network=tcp"))[1]
	daemon.says(t, "network=unix")
	_, agents, _ := startServer(t, environment(t))
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(suite), "client.py"), []byte(outsider), 0o600))
	require.NoError(t, os.WriteFile(suite, fmt.Appendf(nil, `name: outsider
config:
  executor: command
  command: [%s, client.py, %q, %q, %q]
  sandbox: {write: [%q]}
tasks:
  - {id: connect, prompt: x, graders: [{type: text, config: {contains: [door]}}]}
`, python, tcp, socket, agents, dir), 0o600))
	const pong = `{"jsonrpc":"2.0","id":1,"result":"pong"}`
	for mode, want := range map[string]string{
		"off":  "tcp " + pong + "\n\nunix " + pong + "\n\ndoor 426",
		"auto": "tcp refused\nunix refused\ndoor 403",
	} {
		out, _ := waza(t, environment(t), "run", "--json", "--sandbox", mode, suite)
		var result rowsResult
		require.NoError(t, json.Unmarshal([]byte(out), &result), out)
		require.Equal(t, want, result.Tasks[0].Trials[0].Output, mode)
	}
}
