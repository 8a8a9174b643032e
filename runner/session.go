package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"waza/runner/proc"
)

// A session runs the hooks of one task in one sandbox, one after the other. So they share
// processes and temporary files, and what a hook starts runs until the session ends. The session
// is a shell that reads commands. It is not safe for concurrent use, except for end.
type session struct {
	in      *io.PipeWriter
	out     *replies
	process *proc.Process
	cancel  context.CancelFunc
}

// openSession starts a session that does not end with ctx, because hooks run after a cancelled
// run, too. Its programs belong to the scope of ctx. The caller calls end.
func openSession(ctx context.Context, box *proc.Sandbox, dir string, env []string) (*session, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	read, write := io.Pipe()
	s := &session{in: write, out: &replies{}, cancel: cancel}
	var err error
	s.process, err = proc.Start(ctx, proc.Command{
		Args: []string{"sh"}, Dir: dir, Env: env, Stdin: read, Stdout: s.out, Stderr: s.out, Sandbox: box,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

// run runs a command in a directory, collects its output in out, and returns its exit code. When ctx
// ends, it ends the session.
func (s *session) run(ctx context.Context, dir, command string, out *proc.Limited) (int, error) {
	mark := rand.Text()
	code := s.out.expect(mark, out)
	defer s.out.ignore()
	line := fmt.Sprintf("(cd %s && exec sh -c %s) </dev/null 2>&1; printf '\n%s %%d\n' $?\n", quoted(dir), quoted(command), mark)
	if _, err := io.WriteString(s.in, line); err != nil {
		return 0, errors.New("the sandbox of the task's hooks has ended")
	}
	select {
	case c := <-code:
		return c, nil
	case <-ctx.Done():
		s.end()
		return 0, context.Cause(ctx)
	case <-s.process.Done():
		s.in.CloseWithError(io.ErrClosedPipe)
		if err := s.process.Wait(); err != nil {
			return 0, fmt.Errorf("the sandbox of the task's hooks has ended: %w", err)
		}
		return 0, errors.New("the sandbox of the task's hooks has ended")
	}
}

// end ends the session and everything that hooks started in it, and waits for that. A nil session
// has ended.
func (s *session) end() {
	if s != nil {
		s.cancel()
		s.in.CloseWithError(io.ErrClosedPipe)
		_ = s.process.Wait() // it was killed
	}
}

// quoted returns a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// replies is the output of a session. It finds the line that a session prints after a hook: the mark of
// the hook, which no program knows, and the exit code.
type replies struct {
	mu   sync.Mutex // guards the fields below
	mark []byte     // preceded by a newline and followed by a space; nil between hooks
	code chan int
	out  *proc.Limited
	held []byte // may be the start of the line
}

// mostDigits is the length of the longest exit code.
const mostDigits = 3

// expect collects the output in out until the line with the mark, and returns a channel that gets the exit code.
func (r *replies) expect(mark string, out *proc.Limited) <-chan int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark, r.out, r.code, r.held = []byte("\n"+mark+" "), out, make(chan int, 1), nil
	return r.code
}

// ignore discards further output.
func (r *replies) ignore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark, r.out, r.held = nil, nil, nil
}

// Write implements [io.Writer].
func (r *replies) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mark == nil {
		return len(b), nil
	}
	all := slices.Concat(r.held, b)
	if at := bytes.Index(all, r.mark); at >= 0 {
		digits, _, ended := bytes.Cut(all[at+len(r.mark):], []byte("\n"))
		if !ended && len(digits) <= mostDigits {
			r.held = all
			return len(b), nil
		}
		_, _ = r.out.Write(all[:at])
		code, _ := strconv.Atoi(string(digits))
		r.code <- code
		r.mark, r.held = nil, nil
		return len(b), nil
	}
	keep := min(len(all), len(r.mark))
	_, _ = r.out.Write(all[:len(all)-keep])
	r.held = all[len(all)-keep:]
	return len(b), nil
}
