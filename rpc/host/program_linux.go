package host

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseProgram gives the pages of the program's own file back that only the start needed, such as
// the initialization of packages. A page that is needed again comes back from the file, which the
// kernel usually has in memory. Nothing happens where that is impossible.
//
// The kernel maps 64 KiB or more around each page that a program touches, so that a start touches
// most of a program.
func ReleaseProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	var start, end uintptr // of a mapping of the program that is not writable; else 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); n == 3 {
			if start, end = 0, 0; strings.HasSuffix(line, " "+program) && access[1] == '-' {
				start, end = from, to
			}
			continue
		}
		// Pages that differ from the file cannot come back: a dynamic linker or a debugger has
		// changed them.
		if size, ok := strings.CutPrefix(line, "Anonymous:"); ok && start != 0 && strings.TrimSpace(size) == "0 kB" {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED) // only saves memory
		}
	}
}
