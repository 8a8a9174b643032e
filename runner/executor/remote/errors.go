package remote

import (
	"errors"
	"fmt"
)

// ErrCallerGone is the cause with which a server ends the context of an evaluation whose calling
// process is gone. The server keeps the answer for the process that takes over the run. It drops
// answers to evaluations that ended for other reasons.
var ErrCallerGone = errors.New("the calling process is gone")

// NoToolError means that all connected agents that could do an evaluation reported that they lack
// its tool.
type NoToolError struct{ Tool string }

func (e *NoToolError) Error() string { return fmt.Sprintf("no agent has the tool %q", e.Tool) }
