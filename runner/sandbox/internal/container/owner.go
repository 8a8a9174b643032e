package container

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// The labels of containers.
const (
	runLabel = "waza.run" // the ID that the containers of a run share
	// ownerLabel identifies the machine and the user whose processes can be looked up here.
	ownerLabel = "waza.owner"
)

// owner identifies the processes of this user and this process namespace.
var owner = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	namespace, _ := os.Readlink("/proc/self/ns/pid") // empty on systems without
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", host, os.Getuid(), namespace))
	return hex.EncodeToString(sum[:8])
})

// opened counts the runs of this process.
var opened atomic.Int64

// newRunID returns an ID for the containers of a run of this process: its process ID, its start time
// and a number.
func newRunID() string {
	pid := os.Getpid()
	return fmt.Sprintf("%d-%s-%d", pid, startTime(pid), opened.Add(1))
}

// startTime returns the time at which a process started, as the system counts it; 0 if unknown.
func startTime(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "0"
	}
	// The name of the program, in parentheses, can contain spaces. See proc(5), field 22.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "0"
	}
	return string(fields[19])
}

// runs reports whether the process of a run ID exists.
func runs(id string) bool {
	first, rest, _ := strings.Cut(id, "-")
	start, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	return start == "0" || startTime(pid) == start
}

// removeAbandoned removes the containers of processes that have ended without removing them.
func (e *Engine) removeAbandoned(ctx context.Context) error {
	names, err := e.output(ctx, commandTime, "ps", "--all", "--filter", "label="+ownerLabel+"="+owner(), "--format", "{{.Names}}")
	if err != nil {
		return err
	}
	var abandoned []string
	for name := range strings.FieldsSeq(names) {
		if id, ok := runOf(name); ok && !runs(id) {
			abandoned = append(abandoned, name)
		}
	}
	if err = e.remove(abandoned...); err != nil && e.kind == podman {
		// The first try can fail because the monitors of the containers ended with waza, and podman waits for them.
		err = e.remove(abandoned...)
	}
	return err
}

// nameOf returns the name of a container, runOf the run ID in it.
func nameOf(id string, n int) string { return fmt.Sprintf("waza-%s-%d", id, n) }

func runOf(name string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(name, "waza-")
	last := strings.LastIndexByte(rest, '-')
	if !ok || last < 0 || strings.Count(rest, "-") != 3 {
		return "", false
	}
	return rest[:last], true
}

// remove removes containers with their processes and anonymous volumes.
func (e *Engine) remove(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := e.output(context.Background(), commandTime, append([]string{"rm", "--force", "--volumes"}, names...)...)
	return err
}
