package assertion

import (
	"os"
	"slices"
	"strings"
)

// The environment of a worker has what its program needs to start, and nothing
// else: variables often hold keys.

// pythonNames are the variables that an interpreter, or the shim of a version
// manager in its place, looks at.
var pythonNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"PYENV_ROOT", "PYENV_VERSION", "PYENV_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "ASDF_PYTHON_VERSION",
	"MISE_DATA_DIR", "MISE_CONFIG_DIR", "MISE_PYTHON_VERSION", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
}

func pythonEnv() []string { return inherited(pythonNames...) }

// engineEnv is the environment of this program as a worker. One thread evaluates
// and another watches it. A crash needs no stacks, and the race detector of tests no
// pause at the end.
func engineEnv() []string {
	return append(inherited(), "GOMAXPROCS=2", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0")
}

// outerMark begins the variables by which a waza that runs this one finds what it
// has started.
const outerMark = "WAZA_MARK_"

// inherited returns the variables of this process with the given names, and the
// marks that all descendants carry. It is never nil, which would mean everything.
func inherited(names ...string) []string {
	env := []string{}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, outerMark) || slices.Contains(names, name) {
			env = append(env, kv)
		}
	}
	return env
}
