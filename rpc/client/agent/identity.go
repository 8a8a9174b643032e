package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"waza/eval/files"
	"waza/runner/executor/remote"
)

// maxAgents is the maximum number of running agents per directory.
const maxAgents = 1000

// Identity returns a client id from a file in dir, so that a restarted agent keeps its id. It
// returns the first id that no other process uses. Calling release or ending the process frees
// the id.
func Identity(dir string) (id string, release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("client id: %w", err)
	}
	for n := 1; n <= maxAgents; n++ {
		id, f, err := identity(filepath.Join(dir, strconv.Itoa(n)+".id"))
		if err != nil {
			return "", nil, fmt.Errorf("client id: %w", err)
		}
		if f != nil {
			return id, func() { _ = files.Unlock(f) }, nil
		}
	}
	return "", nil, fmt.Errorf("client id: all %d of %s are in use", maxAgents, dir)
}

// identity locks a file with an id, and creates it if it does not exist. The returned file is
// nil when another process has locked it.
func identity(path string) (id string, f *os.File, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil || id == "" {
			f.Close()
			f = nil
		}
	}()
	switch err := files.Lock(f); {
	case errors.Is(err, files.ErrLocked):
		return "", f, nil
	case err != nil:
		return "", f, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return "", f, err
	}
	if id = strings.TrimSpace(string(b)); remote.IsID(id) {
		return id, f, nil
	}
	id = uuid.NewString()
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(id+"\n"), 0)
	}
	return id, f, err
}
