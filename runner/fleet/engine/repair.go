package engine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"waza/eval/files"
)

// leastFree is the space that the disk of an embedded server needs, in bytes. nats-server stops
// storing messages for good when its disk is full.
const leastFree = 4 << 20

// Repair starts the embedded server again if it runs in this process and stopped storing messages
// because its disk was full. The error is the reason why it still cannot store any: the disk is
// full. It returns nil for other servers.
func (c *Conn) Repair() error {
	if c.home == nil {
		return nil
	}
	return c.home.repair()
}

func (h *home) repair() error {
	if err := h.full(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == nil || h.server.stores() {
		return nil
	}
	h.log.Info("embedded server of the fleet starts again, because its disk has room again")
	h.endLocked()
	taken, err := h.takeLockLocked()
	if err != nil || !taken {
		return err // another process starts it
	}
	if err := h.startLocked(); err != nil {
		return errors.Join(err, h.unlockLocked())
	}
	return nil
}

// full returns an error if the disk of the server is full.
func (h *home) full() error {
	var st unix.Statfs_t
	if err := unix.Statfs(h.dir, &st); err != nil {
		return nil // unknown
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < leastFree { //nolint:unconvert // uint32 on macOS
		return fmt.Errorf("the disk of %s is full: %s are free, and the embedded server needs %s", h.dir, files.Size(free), files.Size(leastFree))
	}
	return nil
}

// unlockLocked releases the lock.
func (h *home) unlockLocked() error {
	err := files.Unlock(h.lock)
	h.lock = nil
	return err
}
