package remote

import (
	"fmt"
	"math"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/executor"
)

// Limits of the updates of one attempt that become events of the run.
const (
	maxUpdates       = 200
	maxUpdateMessage = 1000 // characters
	// Of updates with the same status, updateBurst can pass at once, and then one in each
	// updateInterval.
	updateBurst    = 5
	updateInterval = 500 * time.Millisecond
)

// updates converts progress reports of an agent to log events.
type updates struct {
	trial  *executor.Trial
	count  int
	status string
	earned time.Time // when the published updates would have been due at one per interval
}

// publish reports an update, unless too many came just before.
func (u *updates) publish(s Status) {
	now := time.Now()
	if oldest := now.Add(-updateBurst * updateInterval); u.earned.Before(oldest) {
		u.earned = oldest
	}
	if s.Status == u.status && u.earned.Add(updateInterval).After(now) || u.count >= maxUpdates {
		return
	}
	u.count, u.status, u.earned = u.count+1, s.Status, u.earned.Add(updateInterval)
	parts := []string{text.Clip(s.Status, 40)}
	if s.Progress != nil && !math.IsNaN(*s.Progress) {
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*min(max(*s.Progress, 0), 1)))
	}
	line := strings.Join(parts, " ")
	if s.Message != "" {
		line += ": " + text.Clip(s.Message, maxUpdateMessage)
	}
	u.trial.Logf("info", "%s", line)
}
