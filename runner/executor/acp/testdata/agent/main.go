// Command agent is an agent for tests in containers: it speaks the Agent Client Protocol and needs only
// itself. For each prompt it writes the file out.txt, calls a tool of each MCP server of the session and
// asks the proxy for a host, and answers with the results.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// session is what session/new says.
type session struct {
	Cwd     string   `json:"cwd"`
	Servers []server `json:"mcpServers"`
}

type server struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	var s session
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := any(map[string]any{})
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": 1}
		case "session/new":
			_ = json.Unmarshal(m.Params, &s)
			result = map[string]any{"sessionId": "s"}
		case "session/prompt":
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
				"sessionId": "s", "update": map[string]any{
					"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": strings.Join(s.work(), "\n")},
				},
			}})
			result = map[string]any{"stopReason": "end_turn"}
		}
		_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// work does the task, and returns the results.
func (s *session) work() []string {
	var results []string
	if err := os.WriteFile(filepath.Join(s.Cwd, "out.txt"), []byte("done"), 0o600); err != nil {
		results = append(results, err.Error())
	}
	for _, m := range s.Servers {
		results = append(results, m.call())
	}
	answer, err := http.Get("http://example.com/")
	if err != nil {
		return append(results, err.Error())
	}
	answer.Body.Close()
	return append(results, answer.Status)
}

// call calls the tool read of a server.
func (m *server) call() string {
	cmd := exec.Command(m.Command, m.Args...)
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	defer cmd.Wait() //nolint:errcheck // it has answered
	defer stdin.Close()
	lines := bufio.NewScanner(stdout)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"page":"intro"}}}`,
	} {
		fmt.Fprintln(stdin, line)
	}
	for lines.Scan() {
		var answer struct {
			ID     int `json:"id"`
			Result struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &answer) == nil && answer.ID == 2 && len(answer.Result.Content) > 0 {
			return answer.Result.Content[0].Text
		}
	}
	return "no answer"
}
