package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode"

	"waza/eval/text"
)

// Create writes a file of a report of several files. The name is relative to the folder of the
// report and has slashes. The file appears complete or not at all.
type Create = func(name string, write func(io.Writer) error) error

// mostFileName leaves space for additions to a name, which can have 255 bytes in all.
const mostFileName = 100

// FileName makes part of a file's name from any text. If nothing is left, it is otherwise.
func FileName(s, otherwise string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s)
	return cmp.Or(strings.Trim(text.Head(strings.TrimLeft(name, "-."), mostFileName), "-."), otherwise)
}

// Names gives the files and folders of one folder different names, also where the file system
// ignores case. The zero value is ready to use.
type Names struct{ taken map[string]int }

// Add returns the name, or if it is taken, the name with the first free number. The number comes
// before the extension.
func (n *Names) Add(name string) string {
	if n.taken == nil {
		n.taken = map[string]int{}
	}
	ext := path.Ext(name)
	free := name
	for n.taken[folded(free)] > 0 {
		n.taken[folded(name)]++ // so that the next search starts where this one ends
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n.taken[folded(name)], ext)
	}
	n.taken[folded(free)] = 1
	return free
}

// folded returns the same text for names that are equal to a file system without case.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }
