package grader

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"waza/runner/proc"
)

//go:embed python.py
var pythonScript string

const (
	// pythonStart is how long an interpreter may take to come up.
	pythonStart = 20 * time.Second
	// pythonStop is how long it may take to end by itself.
	pythonStop = 500 * time.Millisecond
	// maxReply bounds one line of an interpreter's reply.
	maxReply = 64 << 10
)

// pythonWorker is one interpreter that stays between assertions. It is used by
// one goroutine at a time. Its process and the goroutines that feed it end with
// stop or kill.
type pythonWorker struct {
	process    *proc.Process
	cancel     context.CancelFunc
	in         *io.PipeWriter
	fed        *io.PipeReader // the other end of in, read by process
	out        *os.File
	replies    *bufio.Reader
	stderr     *proc.Limited // to be read when the process has ended
	executable string
}

// pythonReply is one line of an interpreter.
type pythonReply struct {
	Ready      bool           `json:"ready"`
	Executable string         `json:"executable"`
	Version    []int          `json:"version"`
	Complaint  *string        `json:"complaint"`
	Faults     []*pythonFault `json:"faults"`
	// Fault says why the request could not be read.
	Fault string `json:"fault"`
}

// pythonFault is a syntax error; Line and Column are 1-based, 0 when unknown.
type pythonFault struct {
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

func (f *pythonFault) String() string {
	switch {
	case f.Line > 1:
		return fmt.Sprintf("%s (line %d, column %d)", f.Message, f.Line, f.Column)
	case f.Column > 0:
		return fmt.Sprintf("%s (column %d)", f.Message, f.Column)
	}
	return f.Message
}

// startPython starts an interpreter and waits until it is ready.
func startPython(ctx context.Context, executable string) (*pythonWorker, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fed, in := io.Pipe()
	life, cancel := context.WithCancel(context.Background())
	p := &pythonWorker{cancel: cancel, in: in, fed: fed, out: r, stderr: &proc.Limited{Max: 8 << 10}}
	p.replies = bufio.NewReaderSize(r, maxReply)
	p.process, err = proc.Start(life, proc.Command{
		Args:   []string{executable, "-I", "-S", "-B", "-W", "ignore", "-c", pythonScript},
		Dir:    os.TempDir(),
		Stdin:  fed,
		Stdout: w,
		Stderr: p.stderr,
	})
	w.Close()
	if err != nil {
		cancel()
		fed.Close()
		r.Close()
		return nil, err
	}
	if err := p.handshake(ctx); err != nil {
		said := p.kill()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("%s does not work as a Python interpreter: %w%s", executable, err, said)
	}
	return p, nil
}

func (p *pythonWorker) handshake(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.abort)()
	reply, err := p.receive(pythonStart)
	switch {
	case err != nil:
		return err
	case !reply.Ready:
		return errors.New("it did not say that it is ready")
	case slices.Compare(reply.Version, []int{3, 7}) < 0:
		return fmt.Errorf("it is version %v, and 3.7 or later is needed", reply.Version)
	}
	p.executable = reply.Executable
	return nil
}

// abort makes what waits for the interpreter return, and the interpreter die.
func (p *pythonWorker) abort() {
	p.cancel()
	p.fed.Close()
}

// kill ends the interpreter at once and returns the end of what it said on
// stderr, for an error text.
func (p *pythonWorker) kill() string {
	p.abort()
	p.wait()
	return p.said()
}

// stop lets the interpreter end by itself, and kills it when it does not.
func (p *pythonWorker) stop() {
	p.in.Close()
	timer := time.NewTimer(pythonStop)
	defer timer.Stop()
	select {
	case <-p.process.Done():
	case <-timer.C:
	}
	p.kill()
}

func (p *pythonWorker) wait() {
	_ = p.process.Wait()
	p.out.Close()
}

// said gives the last line on stderr of an interpreter that has ended.
func (p *pythonWorker) said() string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + clip(last, excerptBytes)
	}
	return ""
}

// send writes one request. It returns when the interpreter has taken it.
func (p *pythonWorker) send(request any) error {
	line, err := encodeJSON(request)
	if err != nil {
		return err
	}
	stuck := time.AfterFunc(pythonStart, p.abort)
	defer stuck.Stop()
	_, err = p.in.Write(append(line, '\n'))
	return err
}

// receive reads one reply. The error is os.ErrDeadlineExceeded when it does not
// come in time, and io.EOF when the interpreter has ended.
func (p *pythonWorker) receive(timeout time.Duration) (*pythonReply, error) {
	if err := p.out.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	line, err := p.replies.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	var reply pythonReply
	if err := json.Unmarshal(line, &reply); err != nil {
		return nil, fmt.Errorf("it replied with %s", excerpt(string(line)))
	}
	return &reply, nil
}

// errRequest says that the interpreter could not read what it was sent.
type errRequest struct{ why string }

func (e *errRequest) Error() string { return "the interpreter cannot read the trial: " + e.why }

// grade evaluates sources over a subject and gives each complaint, in order, to
// take. When it returns an error, the worker must be killed: the first source
// without a complaint is at fault, unless it is an *errRequest or ctx has ended.
func (p *pythonWorker) grade(ctx context.Context, subject json.RawMessage, sources []string, timeout time.Duration, take func(complaint string)) error {
	defer context.AfterFunc(ctx, p.abort)()
	err := p.send(map[string]any{"subject": subject, "assertions": sources})
	if err != nil {
		return err
	}
	for range sources {
		reply, err := p.receive(timeout)
		if err != nil {
			return err
		}
		if reply.Complaint == nil {
			return &errRequest{reply.Fault}
		}
		take(*reply.Complaint)
	}
	return nil
}

// check compiles sources without running them. The result has nil for each one
// that is well.
func (p *pythonWorker) check(ctx context.Context, sources []string) ([]*pythonFault, error) {
	defer context.AfterFunc(ctx, p.abort)()
	if err := p.send(map[string]any{"check": sources}); err != nil {
		return nil, err
	}
	reply, err := p.receive(pythonStart)
	if err != nil {
		return nil, err
	}
	if len(reply.Faults) != len(sources) {
		return nil, &errRequest{reply.Fault}
	}
	return reply.Faults, nil
}
