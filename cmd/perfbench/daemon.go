package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A daemon is a `waza jsonrpc` with a state directory of its own, and the client of its stdin and
// stdout. The client must be closed. It is not safe for concurrent use.
type daemon struct {
	cmd     *exec.Cmd
	state   string
	in      io.WriteCloser
	answers *bufio.Reader
	stderr  bytes.Buffer
	// counter asks the program of the measure of allocations for its counts.
	counter *counter
}

// daemon starts a program as a daemon. Its environment is small and always the same, because waza
// searches outputs for the keys of its environment.
func (b *bench) daemon(ctx context.Context, program string, args ...string) (*daemon, error) {
	return b.start(ctx, nil, program, append([]string{"jsonrpc"}, args...)...)
}

func (b *bench) start(ctx context.Context, c *counter, program string, args ...string) (*daemon, error) {
	state, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		return nil, err
	}
	d := &daemon{cmd: exec.CommandContext(ctx, program, args...), state: state, counter: c}
	d.cmd.Env = b.environment(state)
	d.cmd.Stderr = &d.stderr
	if c != nil {
		d.cmd.ExtraFiles = c.program
		d.cmd.Env = append(d.cmd.Env, "GOMAXPROCS=2") // some pools have a part for each processor
	}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.answers = bufio.NewReaderSize(out, 1<<20)
	return d, d.cmd.Start()
}

// environment returns the environment of measured programs.
func (b *bench) environment(state string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.dir, "WAZA_STATE=" + state}
}

// close ends the daemon, removes its state, and returns the processor time that it used.
func (d *daemon) close() (time.Duration, error) {
	defer os.RemoveAll(d.state)
	_ = d.in.Close()
	if _, err := io.Copy(io.Discard, d.answers); err != nil {
		return 0, err
	}
	if err := d.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("the daemon ended with %w\n%s", err, d.stderr.Bytes())
	}
	return d.cmd.ProcessState.UserTime() + d.cmd.ProcessState.SystemTime(), nil
}

// send sends a request without waiting for its answer.
func (d *daemon) send(method string, params map[string]any) error {
	if params == nil {
		params = map[string]any{}
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": method, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = d.in.Write(append(line, '\n'))
	return err
}

// next returns the next line, which is valid until the next call.
func (d *daemon) next() ([]byte, error) {
	line, err := d.answers.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("the daemon sent no further line: %w\n%s", err, d.stderr.Bytes())
	}
	return line, nil
}

// answer returns the result of a request, and skips all notifications before it.
func (d *daemon) answer(method string) (json.RawMessage, error) {
	start := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q`, method))
	for {
		line, err := d.next()
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(line, start) {
			continue
		}
		var a struct{ Result, Error json.RawMessage }
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, err
		}
		if a.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, a.Error)
		}
		return a.Result, nil
	}
}

func (d *daemon) call(method string, params map[string]any) (json.RawMessage, error) {
	if err := d.send(method, params); err != nil {
		return nil, err
	}
	return d.answer(method)
}

// run carries out a suite and reads all its notifications. It returns the time from the request to
// eval.complete. All trials must pass.
func (d *daemon) run(suite string) (time.Duration, error) {
	start := time.Now()
	if err := d.send("eval.run", map[string]any{"path": suite}); err != nil {
		return 0, err
	}
	if _, err := d.answer("eval.run"); err != nil {
		return 0, err
	}
	err := d.complete()
	return time.Since(start), err
}

// complete reads up to eval.complete. All trials must have passed.
func (d *daemon) complete() error {
	for {
		line, err := d.next()
		if err != nil {
			return err
		}
		if bytes.Contains(line, []byte(`"eval.complete"`)) {
			return passed(line)
		}
	}
}

// passed reports whether all trials passed, given the notification of the end of a run.
func passed(line []byte) error {
	var end struct {
		Params struct {
			Status  string
			Summary struct{ Trials struct{ Total, Passed int } }
		}
	}
	if err := json.Unmarshal(line, &end); err != nil {
		return err
	}
	if t := end.Params.Summary.Trials; end.Params.Status != "completed" || t.Total == 0 || t.Passed != t.Total {
		return errors.New("not all trials passed: " + string(line))
	}
	return nil
}

// suite writes a suite and returns its path.
func (b *bench) suite(text string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "suite")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "eval.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
