package fleet

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"waza/runner/fleet/engine"
	"waza/runner/fleet/survey"
	"waza/runner/fleetaddr"
	"waza/runner/plan"
)

// NewViewer returns a viewer of this user's fleet: the fleet of [plan.FleetVariable], else the
// embedded one, if it was used before. The viewer connects on demand and stays connected for a
// while. The caller closes it.
func NewViewer(p Program) *Viewer { return &Viewer{p: p} }

// Viewer is a [survey.Viewer]. It is safe for concurrent use, and has no goroutines except those
// of its connection.
type Viewer struct {
	p Program

	mu     sync.Mutex // guards the fields below; held during a survey, so that concurrent callers share one answer
	conn   *engine.Conn
	given  string      // the address of the connection
	idle   *time.Timer // closes the connection
	last   *survey.Survey
	closed bool
}

const (
	// freshTime is how long an answer is reused.
	freshTime = 500 * time.Millisecond
	// idleTime is how long an unused connection stays open.
	idleTime = time.Minute
)

// Survey implements [survey.Viewer].
func (v *Viewer) Survey(ctx context.Context) (*survey.Survey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	given, err := v.knownLocked()
	if given == "" || err != nil || v.closed {
		return nil, err
	}
	if v.last != nil && v.given == given && time.Since(v.last.Time) < freshTime {
		return v.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if err := v.connectLocked(ctx, given); err != nil {
		return nil, err
	}
	s, err := survey.Read(ctx, v.conn.JetStream(), v.conn.Address().Team)
	if err != nil {
		return nil, err
	}
	s.Fleet = v.conn.Address().String()
	v.last = s
	return s, nil
}

// knownLocked returns the address of the fleet; empty without one.
func (v *Viewer) knownLocked() (string, error) {
	if given := os.Getenv(plan.FleetVariable); given != "" {
		return given, nil
	}
	state, err := v.p.StateDir()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(state, "fleet")); err != nil {
		return "", nil
	}
	return "embedded", nil
}

func (v *Viewer) connectLocked(ctx context.Context, given string) error {
	if v.conn != nil && v.given == given {
		v.idle.Reset(idleTime)
		return nil
	}
	v.endLocked()
	a, err := fleetaddr.Parse(given)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	v.conn, err = v.p.connect(ctx, a.In(dir), engine.Options{Name: "waza dashboard", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		v.conn = nil
		return err
	}
	v.given = given
	v.idle = time.AfterFunc(idleTime, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.endLocked()
	})
	return nil
}

func (v *Viewer) endLocked() {
	if v.conn != nil {
		v.idle.Stop()
		v.conn.Close()
		v.conn, v.last = nil, nil
	}
}

// Close ends the connection for good.
func (v *Viewer) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	v.endLocked()
}
