package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"waza/cmd/waza/exit"
)

// Context returns a context that ends with the first signal.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// ContextThenExit returns a context that ends with the first signal. The second signal ends the
// program at once; the guard ends the processes that it leaves running.
func ContextThenExit(parent context.Context) (ctx context.Context, stop func()) {
	list, stop := Contexts(parent, 1, 0)
	return list[0], stop
}

// Contexts returns n contexts. Each signal ends the next of them, and the signal after the last
// ends the program at once. A signal counts only when the one before it is older than apart.
func Contexts(parent context.Context, n int, apart time.Duration) (list []context.Context, stop func()) {
	list = make([]context.Context, n)
	cancels := make([]context.CancelCauseFunc, n)
	for i := range n {
		list[i], cancels[i] = context.WithCancelCause(parent)
	}
	signals := make(chan os.Signal, 2*n)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		received := 0
		var last time.Time
		for sig := range signals {
			if time.Since(last) < apart {
				continue
			}
			last = time.Now()
			if received == n {
				os.Exit(exit.Interrupted)
			}
			cancels[received](fmt.Errorf("ended by %v", sig))
			received++
		}
	}()
	return list, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		for _, cancel := range cancels {
			cancel(nil)
		}
	}
}
