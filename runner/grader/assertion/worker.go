package assertion

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/proc"
)

const (
	// startTime is how long a worker may take to come up, and to take a request.
	startTime = 20 * time.Second
	// stopTime is how long it may take to end by itself when it is no longer needed,
	// and dieTime when it has closed its output.
	stopTime = 500 * time.Millisecond
	dieTime  = 5 * time.Second
	// maxReply bounds one line of a reply.
	maxReply = 64 << 10
	// maxStderr bounds what is kept of what a worker prints on stderr.
	maxStderr = 8 << 10
	// excerptBytes is how much of a text an error shows.
	excerptBytes = 160
)

// worker is one process that stays between assertions. It is used by one goroutine
// at a time. Its process and the goroutines that feed it end with stop or kill.
type worker struct {
	language   *Language
	process    *proc.Process
	cancel     context.CancelFunc
	in         *io.PipeWriter
	fed        *io.PipeReader // the other end of in, read by process
	out        *os.File
	replies    *bufio.Reader
	stderr     *proc.Limited // to be read when the process has ended
	executable string
}

// startWorker starts a process and waits until it is ready.
func startWorker(ctx context.Context, language *Language, program string) (*worker, error) {
	r, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fed, in := io.Pipe()
	life, cancel := context.WithCancel(context.Background())
	w := &worker{language: language, cancel: cancel, in: in, fed: fed, out: r, stderr: &proc.Limited{Max: maxStderr}}
	w.replies = bufio.NewReaderSize(r, maxReply)
	w.process, err = proc.Start(life, proc.Command{
		Args:   language.args(program),
		Dir:    os.TempDir(),
		Env:    language.env(),
		Stdin:  fed,
		Stdout: out,
		Stderr: w.stderr,
	})
	out.Close()
	if err != nil {
		cancel()
		fed.Close()
		r.Close()
		return nil, err
	}
	go func() { // ends with the process
		<-w.process.Done()
		fed.Close() // so that nobody waits for a dead process to read
	}()
	if err := w.handshake(ctx); err != nil {
		w.kill()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("%s does not work as a worker for %s: %w%s", program, language.name, err, w.said())
	}
	return w, nil
}

func (w *worker) handshake(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.abort)()
	r, err := w.receive(startTime)
	switch {
	case err != nil:
		return err
	case !r.Ready:
		return errors.New("it did not say that it is ready")
	}
	w.executable = r.Executable
	return w.language.accept(r)
}

// abort makes what waits for the worker return, and the process die.
func (w *worker) abort() {
	w.cancel()
	w.fed.Close()
}

// kill ends the worker at once, with its process group.
func (w *worker) kill() {
	w.abort()
	w.wait()
}

// stop lets the worker end by itself, and kills it when it does not.
func (w *worker) stop() {
	w.in.Close()
	w.ended(stopTime)
	w.kill()
}

// ended waits for the end of the process and reports whether it came in time. A
// limit of 0 means that it does not wait.
func (w *worker) ended(limit time.Duration) bool {
	select {
	case <-w.process.Done():
		return true
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.process.Done():
		return true
	case <-timer.C:
		return false
	}
}

func (w *worker) wait() {
	_ = w.process.Wait()
	w.out.Close()
}

// said gives the line on stderr by which a worker that has ended says why, for the
// end of an error.
func (w *worker) said() string {
	lines := strings.Split(strings.TrimSpace(w.stderr.String()), "\n")
	why := lines[len(lines)-1]
	if w.language.firstLine {
		why = lines[0]
	}
	if why = strings.TrimSpace(why); why == "" {
		return ""
	}
	return ": " + text.Clip(why, excerptBytes)
}

// errReply says that the worker sent something that is no reply.
var errReply = errors.New("no reply")

// errRequest says that the worker could not read what it was sent.
type errRequest struct{ why string }

func (e *errRequest) Error() string { return "the trial cannot be read: " + e.why }

// fate says how an assertion took the worker down. An error means that it did not,
// but something else.
func (w *worker) fate(ctx context.Context, failed error, timeout time.Duration) (complaint string, err error) {
	var unreadable *errRequest
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case errors.As(failed, &unreadable):
		return "", failed
	case errors.Is(failed, os.ErrDeadlineExceeded):
		return timedOut(timeout), nil
	case errors.Is(failed, errReply) || !w.ended(dieTime):
		w.kill()
		return "it crashed the interpreter" + w.said(), nil
	}
	var exit *proc.ExitError
	errors.As(w.process.Wait(), &exit)
	switch {
	case exit == nil:
		return "it ended the interpreter" + w.said(), nil
	case exit.FromOutside():
		return "", fmt.Errorf("the %s interpreter was ended by signal %s, not by waza", w.language.name, exit.Signal)
	case exit.Signal == "SIGXCPU":
		return timedOut(timeout), nil
	}
	return "it crashed the interpreter" + w.said(), nil
}

func timedOut(limit time.Duration) string { return fmt.Sprintf("timed out after %v", limit) }

// failed is the error of a worker that was killed because it could not do its work.
func (w *worker) failed(err error) error {
	return fmt.Errorf("the %s interpreter failed: %w%s", w.language.name, err, w.said())
}

// send writes one request. It returns when the worker has taken it.
func (w *worker) send(r request) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line) // ends with a newline
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	stuck := time.AfterFunc(startTime, w.abort)
	defer stuck.Stop()
	_, err := w.in.Write(line.Bytes())
	return err
}

// receive reads one reply. The error is os.ErrDeadlineExceeded when it does not
// come in time, and io.EOF when the process has ended.
func (w *worker) receive(timeout time.Duration) (*reply, error) {
	if err := w.out.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	line, err := w.replies.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line of more than %d bytes", errReply, maxReply)
	case err != nil:
		return nil, err
	}
	r := &reply{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("%w: %q", errReply, text.Clip(string(line), excerptBytes))
	}
	return r, nil
}

// grade evaluates assertions over a subject and gives each complaint, in order, to
// take. After an error the worker is of no use, and fate has the reason.
func (w *worker) grade(ctx context.Context, subject json.RawMessage, assertions []string, timeout time.Duration, take func(complaint string)) error {
	defer context.AfterFunc(ctx, w.abort)()
	// The deadline acts first. The limit of processor time is there for a worker
	// whose waza was killed or stopped.
	cpu := int(min(math.Ceil(timeout.Seconds()), math.MaxInt32)) + 1
	if err := w.send(request{Subject: subject, Assertions: assertions, CPUSeconds: cpu}); err != nil {
		return err
	}
	for range assertions {
		r, err := w.receive(timeout)
		if err != nil {
			return err
		}
		if r.Complaint == nil {
			return &errRequest{r.Fault}
		}
		take(*r.Complaint)
	}
	return nil
}

// check compiles assertions without running them.
func (w *worker) check(ctx context.Context, assertions []string) ([]*Fault, error) {
	defer context.AfterFunc(ctx, w.abort)()
	if err := w.send(request{Check: assertions}); err != nil {
		return nil, err
	}
	r, err := w.receive(startTime)
	if err != nil {
		return nil, err
	}
	if len(r.Faults) != len(assertions) {
		return nil, &errRequest{r.Fault}
	}
	return r.Faults, nil
}
