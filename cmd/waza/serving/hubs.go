package serving

import (
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/executor/router"
)

// Hubs connect executors to the clients of the doors.
type Hubs struct {
	Agents   remote.Hub
	Browsers browser.Hub
	Office   router.Sender
}
