package proc_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
)

// losing is a program that ends when it is killed, and whose files are lost then.
type losing struct{ killed chan struct{} }

func (losing) Pid() int { return 0 }

func (l losing) Kill() { close(l.killed) }

func (l losing) Wait() error {
	<-l.killed
	return &proc.LostError{Err: errors.New("no space left")}
}

// A program that was killed reports that its files are lost.
func TestLostAfterKill(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	box := &proc.Sandbox{Elsewhere: true, Launch: func(*exec.Cmd, uint64) (proc.Child, error) {
		cancel(over)
		return losing{make(chan struct{})}, nil
	}}
	err := proc.Run(ctx, proc.Command{Args: []string{"agent"}, Sandbox: box})
	require.ErrorIs(t, err, over)
	require.ErrorContains(t, err, "over; no space left")
	var lost *proc.LostError
	require.ErrorAs(t, err, &lost)
}
