package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchDisk ends the program when its directories hold more than the limit together. The kernel has
// no quota that a user without privileges can set, so the keeper counts from time to time: at most a
// tenth of a processor's time goes into it.
func (k *keeper) watchDisk(dirs []string, most int64, ended chan struct{}) {
	for pause := watchEvery; ; {
		timer := time.NewTimer(pause)
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
		}
		began := time.Now()
		if holdMore(dirs, most) {
			k.stop(fmt.Sprintf("its workspace contains more than %d bytes, its limit (config.sandbox.limits.disk)", most), ended)
			return
		}
		pause = max(watchEvery, 9*time.Since(began))
	}
}

// holdMore reports whether the files below directories take up more than that many bytes on the
// disk, with those that are deleted and still open in some process of the sandbox. Files that change or
// disappear in the meantime count as they are found.
func holdMore(dirs []string, most int64) bool {
	c := counter{left: most, seen: map[file]bool{}}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			var st unix.Stat_t
			if err == nil && unix.Lstat(path, &st) == nil {
				c.devices |= 1 << (st.Dev % 64)
				c.add(&st)
			}
			if c.left < 0 {
				return filepath.SkipAll
			}
			return nil // what cannot be read is not counted
		})
	}
	if c.left >= 0 {
		c.addDeleted()
	}
	return c.left < 0
}

// file identifies a file of the machine.
type file struct{ device, inode uint64 }

// counter counts what files take up.
type counter struct {
	left    int64         // bytes of the limit
	seen    map[file]bool // the files that were counted and can be met again
	devices uint64        // a set of the devices of counted files, of which it knows the number modulo 64
}

const blockSize = 512 // of the blocks that stat counts

func (c *counter) add(st *unix.Stat_t) {
	if st.Nlink != 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		id := file{st.Dev, st.Ino}
		if c.seen[id] {
			return
		}
		c.seen[id] = true
	}
	c.left -= st.Blocks * blockSize
}

// addDeleted adds the files that have no name anymore and are open in processes of the sandbox, on the
// devices of the counted files.
func (c *counter) addDeleted() {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, p := range processes {
		if pid, err := strconv.Atoi(p.Name()); err != nil || pid == 1 {
			continue
		}
		dir := "/proc/" + p.Name() + "/fd/"
		open, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, fd := range open {
			var st unix.Stat_t
			if unix.Stat(dir+fd.Name(), &st) == nil && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG && c.devices&(1<<(st.Dev%64)) != 0 {
				c.add(&st)
			}
		}
	}
}
