package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"waza/eval/jsonwalk"
	"waza/runner/executor"
	"waza/runner/record"
)

const (
	// maxEventLine bounds a line of the side channel; a longer one is passed over.
	maxEventLine = 1 << 20
	// maxEventDepth bounds how deep arguments and results are nested. Within an
	// event, and that within a result, they must stay below what readers of
	// JSON take, which is 10,000 levels in Go and 1,000 elsewhere.
	maxEventDepth = 500
	// maxLogs bounds the log lines of one program: each becomes an event of the run.
	maxLogs = 1000
)

// channel is the side channel of one program: a pipe that is its file
// descriptor 3, and a goroutine that reads the other end until wait.
type channel struct {
	read, write *os.File
	usage       *record.Usage // complete after wait
	done        chan struct{}
	bad         bool // a line that is no event was told of
	logs        int  // log lines so far
}

// event is a line of the side channel.
type event struct {
	Type string `json:"type"`

	// tool_call
	ID         string          `json:"id"`
	Name       string          `json:"name"` // also of a skill
	Kind       string          `json:"kind"`
	Title      string          `json:"title"`
	Arguments  json.RawMessage `json:"arguments"`
	Result     json.RawMessage `json:"result"`
	Status     string          `json:"status"`
	DurationMS int64           `json:"duration_ms"`

	// message, thought, error
	Role    string `json:"role"`
	Text    string `json:"text"`
	Content string `json:"content"` // another spelling of text
	Message string `json:"message"` // another spelling of text

	// usage
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	TotalTokens  int64   `json:"total_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

func listen(t *executor.Trial, alive func()) (*channel, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &channel{read: r, write: w, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.serve(t, alive)
	}()
	return c, nil
}

// wait lets the goroutine read what is left, no longer than grace when a
// process that got away holds the other end, and closes the channel.
func (c *channel) wait(grace time.Duration) {
	_ = c.read.SetReadDeadline(time.Now().Add(grace))
	<-c.done
	c.read.Close()
}

func (c *channel) serve(t *executor.Trial, alive func()) {
	in := bufio.NewReaderSize(c.read, 32<<10)
	for {
		line, err := readLine(in)
		if len(line) > 0 {
			alive()
			if problem := c.take(t, line); problem != nil && !c.bad {
				c.bad = true
				t.Logf("warning", "file descriptor 3: %v; the line is passed over", problem)
			}
		}
		if err != nil {
			return
		}
	}
}

var (
	errLongLine = errors.New("a line is too long")
	errDeepLine = fmt.Errorf("a line is nested more than %d levels deep", maxEventDepth)
	errManyLogs = fmt.Errorf("more than %d log lines", maxLogs)
	errUsage    = errors.New("usage: counts must not be negative")
)

// readLine returns a line without its newline; one beyond the limit comes back
// cut off, which no parser takes for an event.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if keep := maxEventLine - len(line); keep > 0 {
			line = append(line, part[:min(len(part), keep)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err == nil && len(line) > 0 && line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			return line, err
		}
	}
}

func (c *channel) take(t *executor.Trial, line []byte) error {
	if len(line) >= maxEventLine {
		return errLongLine
	}
	if jsonwalk.Depth(line) > maxEventDepth {
		return errDeepLine
	}
	line = bytes.TrimPrefix(line, []byte("\ufeff"))  // some programs begin a stream with a byte order mark
	line = bytes.ToValidUTF8(line, []byte("\uFFFD")) // arguments and results are passed on as they are
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("not a JSON event: %w", err)
	}
	text := e.Text + e.Content + e.Message
	switch e.Type {
	case "tool_call":
		t.Transcript.ToolCall(record.ToolCall{
			ID: e.ID, Name: e.Name, Kind: e.Kind, Title: e.Title, Arguments: e.Arguments,
			Result: e.Result, Status: e.Status, DurationMS: e.DurationMS,
		})
	case "message":
		role := e.Role
		if role == "" {
			role = "assistant"
		}
		t.Transcript.Message(role, text)
	case "thought":
		t.Transcript.Add(record.Entry{Type: record.EntryThought, Text: text})
	case "skill":
		t.Transcript.Skill(e.Name)
	case "error":
		t.Transcript.Add(record.Entry{Type: record.EntryError, Text: text})
	case "usage":
		if e.InputTokens < 0 || e.OutputTokens < 0 || e.TotalTokens < 0 || e.CostUSD < 0 {
			return errUsage
		}
		sum := record.Usage{InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, TotalTokens: e.TotalTokens, CostUSD: e.CostUSD}
		if c.usage != nil {
			sum = c.usage.Add(sum)
		}
		c.usage = &sum
	case "log":
		if c.logs++; c.logs > maxLogs {
			return errManyLogs
		}
		t.Logf("info", "%s", text)
	default:
		return fmt.Errorf("unknown type %q; known are tool_call, message, thought, usage, skill, error, log", e.Type)
	}
	return nil
}
