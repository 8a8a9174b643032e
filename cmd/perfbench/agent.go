package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

var agentMeasure = measure{
	title: "Trial of an agent",
	rows: []row{
		{name: "trial of an ACP agent, warm", unit: "ms", target: target{most: 1}},
		{name: "trial of an ACP agent, processor time", unit: "ms"},
	},
	how: "A client runs trials of the executor `acp`, one after the other, with an agent that answers at once. The figure is the " +
		"difference between a run of 220 and a run of 20 trials, divided by 200, so the start of the agent is not part of it. The " +
		"processor time includes that of the agent.",
	floor: "A Go program sends the same agent the requests of a trial, line by line, and waits for each answer, 200 times.",
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		suite := func(trials int) string {
			return settings("acp", trials, 1, fmt.Sprintf("  agent: {command: [%q, agent]}", b.self)) + "tasks: [{id: a, prompt: x}]\n"
		}
		return b.sequence(ctx, b.rounds(7, 1), sequence{suite: suite, few: 20, many: 220}, func() ([]float64, error) {
			u, err := b.helper(ctx, "floor-agent", strconv.Itoa(floorSessions))
			return u.each(floorSessions).milliseconds(), err
		})
	},
}

const floorSessions = 200

type agentMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
}

// agentAnswers are the results of an agent that does nothing, by method.
var agentAnswers = map[string]string{
	"initialize":     `{"protocolVersion":1,"authMethods":[],"agentCapabilities":{"sessionCapabilities":{"close":{}}}}`,
	"session/new":    `{"sessionId":"s"}`,
	"session/prompt": `{"stopReason":"end_turn"}`,
	"session/close":  `{}`,
}

const agentUpdate = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}` + "\n"

// serveAgent is an agent of the Agent Client Protocol that answers each prompt at once.
func serveAgent([]string) error {
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var m agentMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		answer, ok := agentAnswers[m.Method]
		if !ok {
			continue
		}
		out := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
		if m.Method == "session/prompt" {
			out = agentUpdate + out
		}
		if _, err := io.WriteString(os.Stdout, out); err != nil {
			return err
		}
	}
}

// askAgent starts the agent and sends it the requests of so many trials.
func askAgent(args []string) error {
	sessions, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	ask := func(method, params string, answers int) error {
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
			return err
		}
		for range answers {
			if _, err := lines.ReadSlice('\n'); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ask("initialize", `{"protocolVersion":1}`, 1); err != nil {
		return err
	}
	for range sessions {
		if err := ask("session/new", `{"cwd":"/tmp","mcpServers":[]}`, 1); err != nil {
			return err
		}
		if err := ask("session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}`, 2); err != nil {
			return err
		}
		if err := ask("session/close", `{"sessionId":"s"}`, 1); err != nil {
			return err
		}
	}
	in.Close()
	return cmd.Wait()
}
