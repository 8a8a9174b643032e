package assertion

import (
	"os"
	"slices"
	"strings"
)

// The environment of a worker holds what its program needs to start and nothing else, because
// variables often hold keys.

// pythonNames are the variables that an interpreter, or the shim of a version manager, reads.
var pythonNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"PYENV_ROOT", "PYENV_VERSION", "PYENV_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "ASDF_PYTHON_VERSION",
	"MISE_DATA_DIR", "MISE_CONFIG_DIR", "MISE_PYTHON_VERSION", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
}

func pythonEnv() []string { return inherited(pythonNames...) }

// engineEnv returns the environment of this program as a worker. The worker needs two threads,
// one to evaluate and one to watch. It needs no stacks in a crash, and no pause at the end from
// the race detector of tests.
func engineEnv() []string {
	return append(inherited(), "GOMAXPROCS=2", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0")
}

// markPrefix is the prefix of the variables by which a waza that runs this one finds the
// processes it started.
const markPrefix = "WAZA_MARK_"

// inherited returns the variables of this process with the given names, and the marks that all
// descendants carry. The result is never nil, because a nil environment inherits everything.
func inherited(names ...string) []string {
	env := []string{}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, markPrefix) || slices.Contains(names, name) {
			env = append(env, kv)
		}
	}
	return env
}
