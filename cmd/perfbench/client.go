package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A client sends requests to a daemon and reads its lines. It is not safe for concurrent use.
type client struct {
	in      io.WriteCloser
	answers *bufio.Reader
}

// send sends a request without waiting for its answer.
func (c *client) send(method string, params map[string]any) error {
	if params == nil {
		params = map[string]any{}
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": method, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// next returns the next line, which is valid until the next call.
func (c *client) next() ([]byte, error) {
	line, err := c.answers.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("the daemon sent no further line: %w", err)
	}
	return line, nil
}

// answer returns the result of a request, and skips all notifications before it.
func (c *client) answer(method string) (json.RawMessage, error) {
	start := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q`, method))
	for {
		line, err := c.next()
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

func (c *client) call(method string, params map[string]any) (json.RawMessage, error) {
	if err := c.send(method, params); err != nil {
		return nil, err
	}
	return c.answer(method)
}

// run carries out a suite and reads all its notifications. It returns the time from the request to
// eval.complete. All trials must pass.
func (c *client) run(suite string) (time.Duration, error) {
	start := time.Now()
	if _, err := c.startRun(suite); err != nil {
		return 0, err
	}
	err := c.complete()
	return time.Since(start), err
}

// startRun starts a suite and returns the ID of the run.
func (c *client) startRun(suite string) (id string, err error) {
	answer, err := c.call("eval.run", map[string]any{"path": suite})
	if err != nil {
		return "", err
	}
	var run struct{ RunID string }
	err = json.Unmarshal(answer, &run)
	return run.RunID, err
}

// complete reads up to eval.complete. All trials must have passed.
func (c *client) complete() error {
	for {
		line, err := c.next()
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
