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
	// startTime is the most time for a worker to start, and to accept a request.
	startTime = 20 * time.Second
	// stopTime is the most time for a worker to end by itself when it is no longer needed.
	// dieTime is the same for a worker that has closed its output.
	stopTime = 500 * time.Millisecond
	dieTime  = 5 * time.Second
	// maxReply is the most bytes of a reply line.
	maxReply = 64 << 10
	// maxValue is the most bytes of a value, and maxLongReply those of a reply with one.
	maxValue     = 8 << 20
	maxLongReply = maxValue + maxReply
	// maxStderr is the most bytes kept of a worker's stderr.
	maxStderr = 8 << 10
	// excerptBytes is the most bytes of a text that an error shows.
	excerptBytes = 160
)

// A worker is a process that stays between assertions. One goroutine can use it at a time. Its
// process and the goroutines that feed it end with stop or kill.
type worker struct {
	language   *Language
	process    *proc.Process
	cancel     context.CancelFunc
	in         *io.PipeWriter
	fed        *io.PipeReader // the other end of in, read by process
	out        *os.File
	replies    *bufio.Reader
	stderr     *proc.Limited // valid after the process has ended
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
		return nil, fmt.Errorf("%s does not work as a worker for %s: %w%s", program, language.name, err, w.exitReason())
	}
	return w, nil
}

func (w *worker) handshake(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.abort)()
	r, err := w.receive(startTime, maxReply)
	switch {
	case err != nil:
		return err
	case !r.Ready:
		return errors.New("it did not report that it is ready")
	}
	w.executable = r.Executable
	return w.language.accept(r)
}

// abort ends the process and unblocks the callers that wait for it.
func (w *worker) abort() {
	w.cancel()
	w.fed.Close()
}

// kill ends the worker at once, with its process group.
func (w *worker) kill() {
	w.abort()
	w.wait()
}

// stop lets the worker end by itself, and kills it if it does not.
func (w *worker) stop() {
	w.in.Close()
	w.ended(stopTime)
	w.kill()
}

// ended waits up to limit for the end of the process and reports whether the process has ended.
// With a limit of 0 it does not wait.
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

// exitReason returns the line on stderr that explains the end of a worker, as the last part of an
// error.
func (w *worker) exitReason() string {
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

// errReply means that the worker sent something other than a reply.
var errReply = errors.New("not a reply")

// errRequest means that the worker could not read a request.
type errRequest struct{ why string }

func (e *errRequest) Error() string { return "cannot read the trial: " + e.why }

// explainExit describes how an assertion ended the worker. It returns an error if something else ended
// the worker.
func (w *worker) explainExit(ctx context.Context, failed error, timeout time.Duration) (complaint string, err error) {
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
		return "it crashed the interpreter" + w.exitReason(), nil
	}
	var exit *proc.ExitError
	errors.As(w.process.Wait(), &exit)
	switch {
	case exit == nil:
		return "it ended the interpreter" + w.exitReason(), nil
	case exit.FromOutside():
		return "", fmt.Errorf("the %s interpreter was ended by signal %s, not by waza", w.language.name, exit.Signal)
	case exit.Signal == "SIGXCPU":
		return timedOut(timeout), nil
	}
	return "it crashed the interpreter" + w.exitReason(), nil
}

func timedOut(limit time.Duration) string { return fmt.Sprintf("timed out after %v", limit) }

// failed returns the error of a worker that was killed because it could not do its work.
func (w *worker) failed(err error) error {
	return fmt.Errorf("the %s interpreter failed: %w%s", w.language.name, err, w.exitReason())
}

// send writes one request. It returns when the worker has read it.
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

// receive reads one reply of at most that many bytes. The error is os.ErrDeadlineExceeded if none arrives in time, and
// io.EOF if the process has ended.
func (w *worker) receive(timeout time.Duration, most int) (*reply, error) {
	if err := w.out.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	line, err := w.readLine(most)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("%w: %q", errReply, text.Clip(string(line), excerptBytes))
	}
	return r, nil
}

// readLine reads a line of at most that many bytes.
func (w *worker) readLine(most int) (line []byte, err error) {
	for {
		part, err := w.replies.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errReply, most)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// grade evaluates assertions about a subject and passes each complaint, in order, to take, like
// [worker.ask].
func (w *worker) grade(
	ctx context.Context, subject json.RawMessage, assertions []string, timeout time.Duration,
	take func(complaint string),
) error {
	return w.ask(ctx, request{Subject: subject, Assertions: assertions}, timeout, maxReply, func(r *reply) { take(*r.Complaint) })
}

// ask sends a request with assertions and passes each reply, in order, to take. After an error the
// worker cannot be used any more; explainExit returns the reason.
func (w *worker) ask(ctx context.Context, req request, timeout time.Duration, most int, take func(*reply)) error {
	defer context.AfterFunc(ctx, w.abort)()
	// The deadline acts first. The limit of processor time is for a worker whose waza was killed
	// or stopped.
	req.CPUSeconds = int(min(math.Ceil(timeout.Seconds()), math.MaxInt32)) + 1
	if err := w.send(req); err != nil {
		return err
	}
	for range req.Assertions {
		r, err := w.receive(timeout, most)
		if err != nil {
			return err
		}
		if r.Complaint == nil {
			return &errRequest{r.Fault}
		}
		take(r)
	}
	return nil
}

// check compiles assertions without running them.
func (w *worker) check(ctx context.Context, assertions []string) ([]*Fault, error) {
	defer context.AfterFunc(ctx, w.abort)()
	if err := w.send(request{Check: assertions}); err != nil {
		return nil, err
	}
	r, err := w.receive(startTime, maxReply)
	if err != nil {
		return nil, err
	}
	if len(r.Faults) != len(assertions) {
		return nil, &errRequest{r.Fault}
	}
	return r.Faults, nil
}
