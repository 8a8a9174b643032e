//go:build linux

package fleet_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// fullDisk is the disk of an embedded server. Trials fill it.
type fullDisk struct {
	*testing.T
	dir  string
	once sync.Once
	full chan struct{} // closed when the disk is full
}

func newFullDisk(t *testing.T) *fullDisk {
	t.Helper()
	d := &fullDisk{T: t, dir: t.TempDir(), full: make(chan struct{})}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m,mode=700"); err != nil {
		t.Skipf("no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(d.dir, unix.MNT_DETACH)) })
	return d
}

func (d *fullDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill fills the disk during the first trial.
func (d *fullDisk) fill(context.Context, *executor.Trial) (string, error) {
	d.once.Do(func() {
		defer close(d.full)
		f, err := os.Create(d.ballast())
		if err == nil {
			_, _ = io.Copy(f, zeros{}) // until the disk is full
			f.Close()
		}
	})
	return "done", nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func (d *fullDisk) connect(ctx context.Context, address engine.Address) (*engine.Conn, error) {
	return engine.Connect(ctx, address, engine.Options{State: d.dir, Log: slog.New(slog.DiscardHandler)})
}

// start starts a run with a worker, on the embedded server of the disk.
func (d *fullDisk) start() (live *runner.Run, conn *engine.Conn) {
	d.Helper()
	agents := registry(d.fill)
	address, err := engine.Parse("embedded")
	require.NoError(d, err)
	r, err := runner.New(runner.Options{StateDir: d.TempDir(), Executors: agents, Fleet: fleet.New(fleet.Options{
		Connect: d.connect, Check: time.Second / 4, Log: slog.New(slog.DiscardHandler),
	})})
	require.NoError(d, err)
	d.Cleanup(func() { _ = r.Close(context.Background()) })
	live = runnertest.Start(d.T, r, fmt.Sprintf(twoTasks, 20), record.Request{Fleet: "embedded", Workers: 40})
	conn, err = d.connect(d.Context(), address)
	require.NoError(d, err)
	w := worker.New(worker.Options{
		ID: worker.NewID(), Version: "test", Slots: 2, Offer: offers(), Conn: conn, Dir: d.TempDir(),
		Executors: agents, Graders: builtin.Graders, Limits: &provider.Limits{}, Log: slog.New(slog.DiscardHandler),
	})
	ctx, end := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { _ = w.Run(ctx) })
	d.Cleanup(func() {
		end()
		over.Wait()
		conn.Close()
	})
	return live, conn
}

// A run whose embedded server had no room for messages waited for ever. It ends with the reason.
func TestAttackFullDiskEndsRun(t *testing.T) {
	t.Parallel()
	live, _ := newFullDisk(t).start()
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.StatusFailed, res.Status)
	require.Contains(t, res.Error, "the fleet has stored no messages for 1.5s (the disk of ")
	require.Contains(t, res.Error, "is full")
}

// A run continues when the disk has room again.
func TestAttackFullDiskHasRoomAgain(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t)
	live, conn := d.start()
	<-d.full
	require.Error(t, conn.Repair())
	require.NoError(t, os.Remove(d.ballast()))
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.StatusCompleted, res.Status, res.Error)
	require.Equal(t, 40, res.Summary.Trials.Passed)
}
