//go:build unix

package acp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"waza/runner/mcptools"
	"waza/runner/sandbox"
)

// TestMain runs the fake agent in the test binary if FAKE_AGENT is set.
func TestMain(m *testing.M) {
	mcptools.Main()
	sandbox.Main()
	if os.Getenv("FAKE_AGENT") != "" {
		signal.Ignore(syscall.SIGINT)
		newFake(os.Stdin, os.Stdout).main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fake is an agent that executes the lines of its prompt as commands:
//
//	say TEXT · think TEXT · tool JSON · update JSON · ask JSON · read PATH · write PATH
//	stop REASON · usage IN OUT · quota IN OUT · fail CODE MESSAGE · die CODE · die-once · hang · sleeping · flood MIB · model · mcp · args ·
//	burst N · long MIB · print TEXT · stderr TEXT · orphan · daemon · await-cancel · work MS · ls PATH · cat PATH · preface · env NAME · pid · cwd · close-output
type fake struct {
	in     *bufio.Reader
	out    *bufio.Writer
	id     int
	queued []message // messages that arrived while it waited for an answer
	cwd    string
	mcp    json.RawMessage
	model  string
	// preface is the text before the prompt.
	preface string
}

type message struct {
	ID     *json.RawMessage `json:"id"`
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
	Result json.RawMessage  `json:"result"`
	Error  json.RawMessage  `json:"error"`
}

func newFake(in io.Reader, out io.Writer) *fake {
	return &fake{in: bufio.NewReader(in), out: bufio.NewWriter(out)}
}

func (f *fake) send(v any) {
	b, _ := json.Marshal(v)
	f.out.Write(append(b, '\n'))
	f.out.Flush()
}

func (f *fake) reply(m message, result any) {
	f.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

func (f *fake) refuse(m message, code int, text string) {
	f.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
}

func (f *fake) update(u any) {
	f.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": f.session(), "update": u}})
}

func (f *fake) session() string { return "s" + strconv.Itoa(f.id) }

func (f *fake) read() (message, bool) {
	line, err := f.in.ReadBytes('\n')
	if err != nil {
		return message{}, false
	}
	var m message
	if json.Unmarshal(line, &m) != nil {
		fmt.Fprintln(os.Stderr, "fake: not JSON")
	}
	return m, true
}

// call sends a request to waza and waits for the answer.
func (f *fake) call(method string, params map[string]any) message {
	params["sessionId"] = f.session()
	f.send(map[string]any{"jsonrpc": "2.0", "id": "fake", "method": method, "params": params})
	for {
		m, ok := f.read()
		if !ok {
			os.Exit(0)
		}
		if m.Method == "" {
			return m
		}
		f.queued = append(f.queued, m)
	}
}

func (f *fake) main() {
	mode := os.Getenv("FAKE_MODE")
	if mode == "counts" {
		serveCounts(os.Args[len(os.Args)-1])
	}
	if file := os.Getenv("FAKE_STARTS"); file != "" {
		log, _ := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		fmt.Fprintln(log, os.Getpid())
		log.Close()
	}
	for {
		var m message
		if len(f.queued) > 0 {
			m, f.queued = f.queued[0], f.queued[1:]
		} else {
			var ok bool
			if m, ok = f.read(); !ok {
				return
			}
		}
		switch m.Method {
		case "initialize":
			f.initialize(m, mode)
		case "session/new":
			f.newSession(m, mode)
		case "session/set_model", "session/set_config_option":
			var p struct{ ModelID, ConfigID, Value string }
			json.Unmarshal(m.Params, &p)
			if p.ConfigID == "thinking" {
				if p.Value == "max" {
					f.refuse(m, -32602, "no such level")
				} else {
					f.model += " thinks " + p.Value
					f.reply(m, map[string]any{"configOptions": []any{}})
				}
				continue
			}
			if f.model = p.ModelID + p.Value; !strings.HasPrefix(f.model, "m-") {
				f.refuse(m, -32602, "no such model")
			} else {
				f.reply(m, map[string]any{"configOptions": f.effortOptions(mode)})
			}
		case "session/prompt":
			f.prompt(m)
		case "session/close":
			f.reply(m, map[string]any{})
		}
	}
}

// serveCounts reports the tokens of model calls: two calls of the session, and one of a session
// that a tool started, which claims to be its own child.
func serveCounts(port string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		os.Exit(1)
	}
	answers := map[string]string{
		"/session/s1/message": `[{"info":{"role":"user"}},{"info":{"role":"assistant","tokens":{"input":100,"output":10,"reasoning":5,"cache":{"read":1000,"write":1}}}},
			{"info":{"role":"assistant","tokens":{"input":200,"output":20,"reasoning":0,"cache":{"read":0,"write":0}}}}]`,
		"/session/s1/children":  `[{"id":"sub"}]`,
		"/session/sub/message":  `[{"info":{"role":"assistant","tokens":{"input":7,"output":-1,"reasoning":0,"cache":{}}}}]`,
		"/session/sub/children": `[{"id":"sub"}]`,
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, answers[r.URL.Path])
	}))
}

// slowStart is the time until the agent answers initialize in mode slow.
const slowStart = 100 * time.Millisecond

func (f *fake) initialize(m message, mode string) {
	switch mode {
	case "version":
		f.reply(m, map[string]any{"protocolVersion": 7, "agentCapabilities": map[string]any{}, "authMethods": []any{}})
		return
	case "slow":
		<-time.After(slowStart)
	case "alone": // concurrent starts in a fresh home lock each other out
		file := os.Getenv("FAKE_STARTS") + ".home"
		if _, err := os.Stat(file); err != nil {
			lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				fmt.Fprintln(os.Stderr, "database is locked")
				os.Exit(1)
			}
			lock.Close()
		}
	case "mute":
		select {}
	case "login-prompt":
		fmt.Fprintln(os.Stderr, "You are not logged in. Open a browser?")
		select {}
	case "rubbish":
		fmt.Println("Welcome to the agent!")
		fmt.Println(`{"half": `)
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot load the frobnicator "+os.Getenv("FAKE_API_KEY"))
		os.Exit(9)
	}
	fmt.Println("a banner that is no message")
	f.reply(m, map[string]any{"protocolVersion": 1, "authMethods": []any{}, "agentCapabilities": map[string]any{
		"mcpCapabilities": map[string]any{"http": true}, "sessionCapabilities": map[string]any{"close": map[string]any{}},
	}})
}

// effortOptions returns what the session offers once a model is chosen.
func (f *fake) effortOptions(mode string) []any {
	if mode != "options" {
		return nil
	}
	return []any{map[string]any{"id": "thinking", "category": "thought_level", "type": "select", "currentValue": "medium", "options": []any{
		map[string]any{"value": "low", "name": "Low"}, map[string]any{"value": "medium", "name": "Medium"},
		map[string]any{"value": "high", "name": "High"},
	}}}
}

func (f *fake) newSession(m message, mode string) {
	if mode == "auth" {
		f.refuse(m, -32000, "Authentication required")
		return
	}
	var p struct {
		Cwd        string          `json:"cwd"`
		McpServers json.RawMessage `json:"mcpServers"`
	}
	json.Unmarshal(m.Params, &p)
	f.id++
	f.cwd, f.mcp = p.Cwd, p.McpServers
	if mode == "alone" {
		<-time.After(slowStart)
		os.WriteFile(os.Getenv("FAKE_STARTS")+".home", nil, 0o600)
	}
	answer := map[string]any{"sessionId": f.session()}
	switch mode {
	case "options":
		answer["configOptions"] = []any{map[string]any{"id": "m", "category": "model", "type": "select", "currentValue": "default", "name": "Model", "options": []any{
			map[string]any{"value": "default", "name": "Default"},
			map[string]any{
				"group": "acme", "name": "Acme",
				"options": []any{map[string]any{"value": "acme/claude-opus-4-1", "name": "Opus"}, map[string]any{"value": "acme/m-1", "name": "M"}},
			},
		}}}
	case "no models":
		answer["configOptions"] = []any{
			map[string]any{"id": "m", "category": "model", "type": "select", "currentValue": "default", "options": "none"},
		}
	case "models":
		var models []any
		for i := range 15 {
			models = append(models, map[string]any{"modelId": fmt.Sprintf("gpt-%d", i), "name": "x"})
		}
		answer["models"] = map[string]any{"currentModelId": "default", "availableModels": models}
	}
	f.reply(m, answer)
	f.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
}

func (f *fake) prompt(m message) {
	var p struct {
		Prompt []struct{ Text string } `json:"prompt"`
	}
	json.Unmarshal(m.Params, &p)
	answer := map[string]any{"stopReason": "end_turn"}
	f.preface = ""
	if len(p.Prompt) > 1 {
		f.preface = p.Prompt[0].Text
	}
	for line := range strings.SplitSeq(p.Prompt[len(p.Prompt)-1].Text, "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if verb == "fail" {
			code, text, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(code)
			f.refuse(m, n, text)
			return
		}
		f.act(verb, rest, answer)
	}
	f.reply(m, answer)
}

func text(kind, s string) map[string]any {
	return map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": s}}
}

func (f *fake) say(format string, args ...any) {
	f.update(text("agent_message_chunk", fmt.Sprintf(format, args...)))
}

func (f *fake) act(verb, rest string, answer map[string]any) {
	switch verb {
	case "say":
		f.say("%s", rest)
	case "think":
		f.update(text("agent_thought_chunk", rest))
	case "tool":
		var u map[string]any
		json.Unmarshal([]byte(rest), &u)
		if u["sessionUpdate"] == nil {
			u["sessionUpdate"] = "tool_call"
		}
		f.update(u)
	case "update":
		f.update(json.RawMessage(rest))
	case "print":
		fmt.Println(rest)
	case "stderr":
		fmt.Fprintln(os.Stderr, rest)
	case "stop":
		answer["stopReason"] = rest
	case "usage":
		in, out, _ := strings.Cut(rest, " ")
		i, _ := strconv.Atoi(in)
		o, _ := strconv.Atoi(out)
		answer["usage"] = map[string]any{"inputTokens": i, "outputTokens": o, "totalTokens": i + o}
	case "quota":
		in, out, _ := strings.Cut(rest, " ")
		answer["_meta"] = map[string]any{
			"quota": map[string]any{"token_count": map[string]any{"input_tokens": json.RawMessage(in), "output_tokens": json.RawMessage(out)}},
		}
	case "ask", "ask-always":
		f.ask(verb, rest)
	case "read":
		m := f.call("fs/read_text_file", map[string]any{"path": f.path(rest)})
		f.say("%s%s", m.Result, m.Error)
	case "write":
		m := f.call("fs/write_text_file", map[string]any{"path": f.path(rest), "content": "written"})
		f.say("%s%s", m.Result, m.Error)
	case "call":
		m := f.call(rest, map[string]any{})
		f.say("%s%s", m.Result, m.Error)
	default:
		f.actOnSelf(verb, rest)
	}
}

// ready signals the test that the agent has reached this point of the prompt.
func (f *fake) ready() { os.WriteFile(f.path("ready"), nil, 0o600) }

func (f *fake) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return f.cwd + "/" + p
}

func (f *fake) ask(verb, rest string) {
	options := []any{
		map[string]any{"optionId": "a", "kind": "allow_always", "name": "Always"},
		map[string]any{"optionId": "o", "kind": "allow_once", "name": "Once"},
		map[string]any{"optionId": "r", "kind": "reject_once", "name": "No"},
	}
	if verb == "ask-always" {
		options = []any{options[0], options[2]}
	}
	m := f.call("session/request_permission",
		map[string]any{"toolCall": json.RawMessage(strings.ReplaceAll(rest, "$CWD", f.cwd)), "options": options})
	f.say("%s", m.Result)
}

// actOnSelf executes commands that show or break the process of the agent.
func (f *fake) actOnSelf(verb, rest string) {
	switch verb {
	case "die":
		n, _ := strconv.Atoi(rest)
		os.Exit(n)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "die-once": // but not again in this suite
		file := os.Getenv("FAKE_STARTS") + ".died"
		if _, err := os.Stat(file); err != nil {
			os.WriteFile(file, nil, 0o600)
			os.Exit(1)
		}
	case "hang":
		select {}
	case "close-output":
		os.Stdout.Close()
		select {}
	case "orphan":
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Start()
		f.say("%d", cmd.Process.Pid)
		os.Exit(1)
	case "daemon": // a process that a tool leaves behind and that hides
		pid, _ := exec.Command("sh", "-c", "setsid env -i sleep 1000 </dev/null >/dev/null 2>&1 & echo $!").Output()
		f.say("%s", bytes.TrimSpace(pid))
	case "sleeping": // a tool of the agent that runs in its own process session
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Start()
		f.say("%d", cmd.Process.Pid)
		f.ready()
		cmd.Wait()
	case "await-cancel":
		f.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "bash", "kind": "execute", "status": "in_progress"})
		f.ready()
		for {
			m, ok := f.read()
			if !ok {
				os.Exit(0)
			}
			if m.Method == "session/cancel" {
				f.say("cancelled in time")
				return
			}
		}
	case "flood":
		n, _ := strconv.Atoi(rest)
		line, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update",
			"params": map[string]any{"sessionId": f.session(), "update": text("agent_message_chunk", strings.Repeat("x", 32<<10))}})
		for sent := 0; sent < n<<20; sent += len(line) {
			f.out.Write(append(line, '\n'))
		}
		f.out.Flush()
	case "burst":
		n, _ := strconv.Atoi(rest)
		for range n {
			f.say("x")
		}
	case "long":
		n, _ := strconv.Atoi(rest)
		f.say("%s", strings.Repeat("x", n<<20))
	case "ls":
		entries, _ := os.ReadDir(f.path(rest))
		for _, e := range entries {
			f.say("%s ", e.Name())
		}
	case "env":
		f.say("%s", os.Getenv(rest))
	case "pid":
		f.say("%d", os.Getpid())
	case "cwd":
		f.say("%s", f.cwd)
	case "mcp":
		f.say("%s", f.mcp)
	case "work": // works for some milliseconds and reports the actual time in microseconds
		n, _ := strconv.Atoi(rest)
		start := time.Now()
		<-time.After(time.Duration(n) * time.Millisecond)
		f.say("%d", time.Since(start).Microseconds())
	case "model":
		f.say("%s", f.model)
	case "preface":
		f.say("%q", f.preface)
	case "cat":
		b, err := os.ReadFile(f.path(rest))
		f.say("%s%v", b, err)
	case "args":
		f.say("%s", strings.Join(os.Args[1:], " "))
	}
}
