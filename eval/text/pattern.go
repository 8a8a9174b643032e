package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns a regular expression, which is compiled
// at the first call: most processes need few of those that the program has, and
// compiling all of them delayed every start. The function panics where expr is
// wrong; a test compiles the expression of every call in the repository. It is
// safe for concurrent use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
