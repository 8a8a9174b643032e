package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxRounds bounds how often killMarked looks again for processes that were
// forked while it killed their parents.
const maxRounds = 20

// killMarked kills the processes whose environment holds a variable that begins
// with mark, this process aside. It works only upon those of the same user,
// whose environments can be read.
func killMarked(mark string) int {
	killed := 0
	for range maxRounds {
		pids := marked(mark)
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				killed++
			}
		}
	}
	return killed
}

func marked(mark string) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ") // empty for a zombie
		if err == nil && hasVariable(env, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasVariable reports whether a NUL-separated environment has a variable that
// begins with prefix. A prefix that ends in NUL matches a whole variable.
func hasVariable(env []byte, prefix string) bool {
	for at := 0; ; {
		i := bytes.Index(env[at:], []byte(prefix))
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || env[at-1] == 0 {
			return true
		}
		at++
	}
}
