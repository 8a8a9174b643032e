package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The file that the counted program has beside those of waza. It is no part of the released
// program: go build -overlay adds it.
//
//go:embed counter.go.txt
var counterSource []byte

// A counter asks a counted program for the number and bytes of its allocations.
type counter struct {
	requests, answers *os.File // of this process
	program           []*os.File
}

// count is a number of allocations, and their bytes.
type count struct{ objects, bytes float64 }

func (c count) minus(d count) count { return count{c.objects - d.objects, c.bytes - d.bytes} }

// counted builds waza with a file that counts.
func (b *bench) counted(ctx context.Context) (string, error) {
	source := filepath.Join(b.dir, "counter.go")
	if err := os.WriteFile(source, counterSource, 0o600); err != nil {
		return "", err
	}
	overlay := map[string]string{filepath.Join(b.root, "cmd", "waza", "perfbench_counter.go"): source}
	for file, replacement := range b.overlay {
		overlay[file] = replacement
	}
	return b.countedProgram(), b.build(ctx, b.countedProgram(), overlay)
}

func (b *bench) countedProgram() string { return filepath.Join(b.dir, "waza-counted") }

// countedDaemon starts a counted program.
func (b *bench) countedDaemon(ctx context.Context, program string) (*daemon, error) {
	var c counter
	in, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.requests, c.answers, c.program = requests, answers, []*os.File{in, out}
	d, err := b.start(ctx, &c, program, "jsonrpc")
	in.Close()
	out.Close()
	return d, err
}

func (c *counter) close() {
	c.requests.Close()
	c.answers.Close()
}

// count returns the allocations since the program started.
func (c *counter) count() (n count, err error) {
	if _, err := c.requests.Write([]byte{'?'}); err != nil {
		return n, err
	}
	line, err := bufio.NewReader(c.answers).ReadString('\n')
	if err != nil {
		return n, err
	}
	_, err = fmt.Sscan(line, &n.objects, &n.bytes)
	return n, err
}

// settled returns the allocations once the program has nothing left to do. waza does some work of a run
// after eval.complete.
func (c *counter) settled() (count, error) {
	const pause, calm, few = 20 * time.Millisecond, 4, 20 // an idle daemon and the counter allocate a few
	last, err := c.count()
	for quiet := 0; quiet < calm && err == nil; {
		time.Sleep(pause)
		var now count
		now, err = c.count()
		if quiet++; now.minus(last).objects > few {
			quiet = 0
		}
		last = now
	}
	return last, err
}
