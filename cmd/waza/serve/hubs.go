package serve

import "waza/runner/executor/browser"

// browsers returns the extensions of the browser door, for the runs of this and other processes.
func (s *Server) browsers() browser.Hub {
	if s.browser == nil || s.o.Config.Browser.IsOff() {
		return browser.Closed
	}
	return s.browser.Hub()
}
