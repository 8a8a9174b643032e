package assertion

import (
	_ "embed"
	"fmt"
	"slices"
)

//go:embed python.py
var pythonScript string

// Python returns the language Python. want is the interpreter, a path or a name on PATH; empty
// means $WAZA_PYTHON, else python3, else python.
func Python(want string) *Language {
	return &Language{
		name: "Python",
		find: func() ([]string, error) { return FindPython(want) },
		args: func(program string) []string {
			return []string{program, "-I", "-S", "-B", "-W", "ignore", "-c", pythonScript}
		},
		env: pythonEnv,
		accept: func(r *reply) error {
			if slices.Compare(r.Version, []int{3, 7}) < 0 {
				return fmt.Errorf("version %v is too old, 3.7 or later is required", r.Version)
			}
			return nil
		},
	}
}
