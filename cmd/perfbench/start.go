package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var startMeasure = measure{
	title: "Start",
	rows:  []row{{name: "start to the first answer", unit: "ms", target: target{most: 10}}},
	how:   "The client starts `waza jsonrpc`, sends `ping`, and reads the answer.",
	floor: "A Go program that reads a line and prints a line, built in the same run with the same flags. It is started and " +
		"asked in the same way.",
	run: starts,
}

const helloSource = `package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Print(line)
}
`

func starts(ctx context.Context, b *bench) ([]figure, error) {
	source, hello := filepath.Join(b.dir, "hello.go"), filepath.Join(b.dir, "hello")
	if err := os.WriteFile(source, []byte(helloSource), 0o600); err != nil {
		return nil, err
	}
	if err := b.goCommand(ctx, "build", "-ldflags", "-s -w", "-o", hello, source); err != nil {
		return nil, err
	}
	state := filepath.Join(b.dir, "starts")
	defer os.RemoveAll(state)
	start := func(program string, args ...string) func() ([]float64, error) {
		return func() ([]float64, error) {
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Env = b.environment(state)
			took, err := firstAnswer(cmd)
			return []float64{milliseconds(took)}, err
		}
	}
	return besideFloor(b.rounds(60, 15), start(b.program, "jsonrpc"), start(hello))
}

// firstAnswer starts a program, sends it a line, and returns the time until it has answered.
func firstAnswer(cmd *exec.Cmd) (time.Duration, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		return 0, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return 0, err
	}
	took := time.Since(start)
	in.Close()
	return took, cmd.Wait()
}
