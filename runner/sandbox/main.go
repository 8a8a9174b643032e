package sandbox

import (
	"os"
	"sync/atomic"

	"waza/runner/sandbox/internal/container"
)

// mainCalled reports whether Main was called in this process.
var mainCalled atomic.Bool

// keeperArgument makes this program a keeper, see [Main].
const keeperArgument = "sandbox-keeper"

// ownProgram is this program, which is also the helper of its sandboxes.
const ownProgram = "/proc/self/exe"

// Main lets this program be the helper of its own sandboxes. Every program that runs suites in
// sandboxes, such as waza or a program that embeds the runner, calls Main at the very start of
// main, before it starts anything or reads its arguments. A test binary calls it in TestMain. In
// a process that was started as a helper, Main does not return. In any other process it returns
// at once. Without it, sandboxes with namespaces are not available.
func Main() {
	container.Main()
	if len(os.Args) >= 2 && os.Args[1] == keeperArgument {
		keeperMain()
	}
	mainCalled.Store(true)
}
