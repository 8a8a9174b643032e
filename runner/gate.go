package runner

// Gate decides when the runs of a [Runner] begin. It is safe for concurrent use.
type Gate interface {
	// Enter is called with the id of each run before it is recorded, or resumed if that
	// is set, and with [View.User]. Nobody sees a new run before Enter has returned. An
	// error keeps it from being started; otherwise Leave follows.
	Enter(runID, user string, resumed bool) error
	// Turn returns a channel that is closed when the run may do its first hook or trial.
	Turn(runID string) <-chan struct{}
	// Leave is called when nothing of the run is left to do.
	Leave(runID string, how Left)
}

// Left says how a run leaves its [Gate].
type Left int

// The ways in which runs leave.
const (
	Over       Left = iota // it has ended, or cannot be resumed
	Unrecorded             // it could not be recorded and does not exist
	Closed                 // [Runner.Close] has ended it
)

// open is the gate of those that have none.
type open struct{}

func (open) Enter(string, string, bool) error { return nil }

func (open) Turn(string) <-chan struct{} {
	now := make(chan struct{})
	close(now)
	return now
}

func (open) Leave(string, Left) {}

// awaitTurn waits until the run may begin. It is false when the run is to end before.
func awaitTurn(r *Run) bool {
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
	case <-r.stops:
	}
	return r.ctx.Err() == nil && !r.stop.Load()
}
