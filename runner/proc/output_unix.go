//go:build unix

package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OutputID returns a text that two descriptors share if they are of the same pipe or file; empty
// if it is unknown.
func OutputID(f *os.File) string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
