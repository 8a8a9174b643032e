package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"waza/cmd/waza/exit"
)

// Context returns a context that ends with the first signal.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// ContextThenExit returns a context that ends with the first signal. The second signal ends the
// program at once; the guard ends the processes that it leaves running.
func ContextThenExit(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	stopped := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case sig := <-signals:
				if n > 0 {
					os.Exit(exit.Interrupted)
				}
				cancel(fmt.Errorf("ended by %v", sig))
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel(nil)
	}
}
