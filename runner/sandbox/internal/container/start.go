package container

import (
	"fmt"
	"os"
	"sync/atomic"
)

// startArgument makes this program the one that starts others in containers, see [Main].
const startArgument = "sandbox-start"

// startFault is the exit code of waza in a container that cannot start the program, as shells have it.
const startFault = 127

// mainCalled reports whether Main was called in this process.
var mainCalled atomic.Bool

// A startOrder is what waza in a container does before it starts the program. Its first message has
// the addresses, and its second one means that their listeners are served. The files of that are for the
// program, from descriptor 3.
type startOrder struct {
	Listen []string `json:",omitempty"`
	Go     bool     `json:",omitempty"`
}

// A startAnswer has the listeners as its files.
type startAnswer struct {
	Fault string `json:",omitempty"`
}

// Main lets this program start others in containers. It does not return in a process that was
// started for that, with the arguments sandbox-start ENTRANCE PROGRAM ARGUMENT…
func Main() {
	mainCalled.Store(true)
	if len(os.Args) < 4 || os.Args[1] != startArgument {
		return
	}
	fmt.Fprintln(os.Stderr, "waza:", start(os.Args[2], os.Args[3:])) // only after an error
	os.Exit(startFault)
}
