package command

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/proc"
	"waza/runner/record"
)

const (
	// maxEventLine is the maximum length of a line of the side channel; longer ones are skipped, and an error if they are metadata.
	maxEventLine = 1 << 20
	// maxEventDepth is the maximum nesting of arguments and results. As part of an event, which
	// is part of a result, they must stay below the limits of JSON parsers: 10,000 levels in Go
	// and 1,000 elsewhere.
	maxEventDepth = 500
	// maxLogs is the maximum number of log lines of one program. Each becomes an event of the
	// run.
	maxLogs = 1000
)

// channel is the side channel of one program: a pipe that the program sees as file descriptor 3,
// and a goroutine that reads the other end until wait returns.
type channel struct {
	read, write *os.File
	usage       *record.Usage // complete after wait
	done        chan struct{}
	bad         bool  // an invalid line was reported
	logs        int   // number of log lines until now
	fault       error // of metadata that could not be recorded; complete after wait
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
	Skill      string          `json:"skill"`

	// message, thought, error
	Role    string `json:"role"`
	Text    string `json:"text"`
	Content string `json:"content"` // an alternative to text
	Message string `json:"message"` // an alternative to text

	// metadata
	Metadata json.RawMessage `json:"metadata"`

	// usage
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	TotalTokens  int64   `json:"total_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

func listen(t *executor.Trial, alive func()) (*channel, error) {
	r, w, err := proc.OutputPipe()
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

// wait lets the goroutine read the rest, but at most for grace if an escaped process holds the
// other end, and closes the channel.
func (c *channel) wait(grace time.Duration) {
	_ = c.read.SetReadDeadline(time.Now().Add(grace))
	<-c.done
	c.read.Close()
}

// readers are for channels. Most programs write nothing to theirs.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

func (c *channel) serve(t *executor.Trial, alive func()) {
	in := readers.Get().(*bufio.Reader)
	defer readers.Put(in)
	in.Reset(c.read)
	defer in.Reset(nil)
	for {
		line, err := readLine(in)
		if len(line) > 0 {
			alive()
			problem := c.take(t, line)
			if problem != nil && c.fault == nil && ofMetadata().Match(line[:min(len(line), 200)]) {
				c.fault = executor.Permanent(fmt.Errorf("the program reported metadata that cannot be recorded: %w", problem))
			}
			if problem != nil && !c.bad {
				c.bad = true
				t.Logf("warning", "file descriptor 3: %v; the line is skipped", problem)
			}
		}
		if err != nil {
			return
		}
	}
}

// ofMetadata matches the start of a line with metadata, also of an invalid one.
var ofMetadata = text.Pattern(`"type"\s*:\s*"metadata"|^\s*\{\s*"metadata"\s*:`)

var (
	errLongLine = fmt.Errorf("line is longer than %d KiB", maxEventLine>>10)
	errDeepLine = fmt.Errorf("line is nested more than %d levels deep", maxEventDepth)
	errManyLogs = fmt.Errorf("more than %d log lines", maxLogs)
	errUsage    = errors.New("usage: counts must not be negative")
	errMetadata = errors.New("metadata must be an object")
)

// readLine returns a line without its newline. It truncates a line beyond the limit, so that it
// is no longer a valid event.
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
	line = bytes.TrimPrefix(line, []byte("\ufeff"))  // some programs start a stream with a byte order mark
	line = bytes.ToValidUTF8(line, []byte("\uFFFD")) // arguments and results are recorded unchanged otherwise
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("not a JSON event: %w", err)
	}
	words := e.Text + e.Content + e.Message
	switch e.Type {
	case "tool_call":
		t.Transcript.ToolCall(record.ToolCall{
			ID: e.ID, Name: e.Name, Kind: e.Kind, Title: e.Title, Arguments: e.Arguments,
			Result: e.Result, Status: e.Status, Skill: e.Skill, DurationMS: e.DurationMS, SelfReported: true,
		})
	case "message":
		role := cmp.Or(e.Role, "assistant")
		t.Transcript.Message(role, words)
	case "thought":
		t.Transcript.Add(record.Entry{Type: record.EntryThought, Text: words})
	case "skill":
		t.Transcript.Skill(e.Name)
	case "error":
		t.Transcript.Add(record.Entry{Type: record.EntryError, Text: words})
	case "usage":
		if e.InputTokens < 0 || e.OutputTokens < 0 || e.TotalTokens < 0 || e.CostUSD < 0 {
			return errUsage
		}
		sum := record.Usage{InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, TotalTokens: e.TotalTokens, CostUSD: e.CostUSD}
		if c.usage != nil {
			sum = c.usage.Add(sum)
		}
		c.usage = &sum
	case "metadata":
		if !bytes.HasPrefix(e.Metadata, []byte("{")) {
			return errMetadata
		}
		t.Transcript.Add(record.Entry{Type: record.EntryMetadata, Text: string(e.Metadata)})
	case "log":
		if c.logs++; c.logs > maxLogs {
			return errManyLogs
		}
		t.Logf("info", "%s", words)
	default:
		return fmt.Errorf("unknown type %q; known types: tool_call, message, thought, usage, skill, metadata, error, log", e.Type)
	}
	return nil
}
