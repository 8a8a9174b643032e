package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns a regular expression and compiles it at the first
// call. Most processes need few of the program's expressions, and compiling all of them would
// delay every start. The function panics if expr is invalid; a test compiles the expressions of
// all calls in the repository. It is safe for concurrent use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
