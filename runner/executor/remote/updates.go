package remote

import (
	"fmt"
	"math"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/executor"
)

// Bounds on the updates of one attempt that become events of the run.
const (
	maxUpdates       = 200
	updateInterval   = 500 * time.Millisecond
	maxUpdateMessage = 1000 // characters
)

// updates makes log events of what an agent says about its progress.
type updates struct {
	trial  *executor.Trial
	count  int
	latest time.Time
	status string
}

// take reports an update, unless others came just before.
func (u *updates) take(s Status) {
	now := time.Now()
	if s.Status == u.status && now.Sub(u.latest) < updateInterval || u.count >= maxUpdates {
		return
	}
	u.count, u.latest, u.status = u.count+1, now, s.Status
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
