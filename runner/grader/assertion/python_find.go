package assertion

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"waza/runner/proc"
)

// pythonVariable is the environment variable that names the interpreter for Python assertions.
const pythonVariable = "WAZA_PYTHON"

// FindPython returns the interpreters to try, in order. want is a path or a name on PATH; empty
// means $WAZA_PYTHON, and without that any python3.
//
// A python3 that is a script is the shim of a version manager. A shim needs longer to find the
// interpreter than the interpreter needs to start. Assertions use only the language itself, so
// any other interpreter on PATH will do, and the shim is tried last. The error names what to
// install.
func FindPython(want string) ([]string, error) {
	if want = cmp.Or(want, os.Getenv(pythonVariable)); want != "" {
		path, err := proc.LookPath(want, os.Environ())
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil, noPython(want)
		}
		return []string{path}, nil
	}
	for _, name := range []string{"python3", "python"} {
		if found := onPath(name); len(found) > 0 {
			first := found[0]
			if i := slices.IndexFunc(found, func(path string) bool { return !isScript(path) }); i > 0 {
				return []string{found[i], first}, nil
			}
			return []string{first}, nil
		}
	}
	return nil, noPython("python3")
}

func noPython(name string) error {
	return fmt.Errorf("Python assertions need an interpreter, but %s is not found: install Python 3.7 or later, "+
		"set %s to an interpreter, or write the assertions in JavaScript (language: javascript)", name, pythonVariable)
}

// onPath lists all programs of that name on PATH.
func onPath(name string) []string {
	var found []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path, err := proc.LookPath(name, []string{"PATH=" + dir}); err == nil {
			found = append(found, path)
		}
	}
	return found
}

func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, []byte("#!"))
}
