package serve

import (
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/executor/router"
)

// Hubs connect executors to the clients of the doors.
type Hubs struct {
	Agents    remote.Hub
	Browsers  browser.Hub
	Messenger router.Sender
}

// browsers returns the extensions of the browser door, for the runs of this and other processes.
func (s *Server) browsers() browser.Hub {
	if s.browser == nil || s.o.Config.Browser.IsOff() {
		return browser.Closed
	}
	return s.browser.Hub()
}
