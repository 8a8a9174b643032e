package fleet

import (
	"context"
	"log/slog"
	"os"

	"waza/runner/fleet/engine"
	"waza/runner/fleetaddr"
	"waza/runner/plan"
)

// Host runs the embedded server in this process, so that workers find it as long as the process
// lives. It does nothing if the user has chosen another fleet with [plan.FleetVariable]. It
// returns at once and logs a failure. The caller calls stop, which waits until the server has
// ended.
func Host(p Program, log *slog.Logger) (stop func()) {
	if given := os.Getenv(plan.FleetVariable); given != "" {
		if a, err := fleetaddr.Parse(given); err != nil || !a.Embedded {
			return func() {}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		embedded, err := fleetaddr.Parse("embedded")
		var conn *engine.Conn
		if err == nil {
			conn, err = p.connect(ctx, embedded, engine.Options{Name: "waza serve", Log: log})
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.Warn("cannot serve the embedded fleet", "error", err)
			return
		default:
			<-ctx.Done()
		}
		if conn != nil {
			conn.Close()
		}
	}()
	return func() { cancel(); <-done }
}
