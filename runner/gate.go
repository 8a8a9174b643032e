package runner

// A Gate decides when the runs of a [Runner] start. It is safe for concurrent use.
type Gate interface {
	// Enter is called with the id of each run before it is recorded, or before it is resumed if
	// resumed is set, and with [View.User]. A new run is invisible until Enter has returned. An
	// error keeps the run from being started; otherwise Leave follows.
	Enter(runID, user string, resumed bool) error
	// Turn returns a channel that is closed when the run may start its first hook or trial.
	Turn(runID string) <-chan struct{}
	// Leave is called when the run has nothing left to do.
	Leave(runID string, how Departure)
}

// Departure states how a run left its [Gate].
type Departure int

// The values of Departure.
const (
	Over       Departure = iota // the run has ended or cannot be resumed
	Unrecorded                  // the run could not be recorded and does not exist
	Closed                      // [Runner.Close] ended the run
)

// openGate is the gate of runners without one. It never blocks.
type openGate struct{}

func (openGate) Enter(string, string, bool) error { return nil }

func (openGate) Turn(string) <-chan struct{} {
	now := make(chan struct{})
	close(now)
	return now
}

func (openGate) Leave(string, Departure) {}

// awaitTurn waits until the run may start. It returns false if the run ends before.
func (r *Run) awaitTurn() bool {
	turn := r.runner.gate.Turn(r.ID())
	select {
	case <-turn:
		return true
	default:
	}
	r.logf("info", "Waiting for other runs to end")
	select {
	case <-turn:
	case <-r.ctx.Done():
	case <-r.stopped.done:
	}
	return !r.isEnding()
}
