// Package machine measures how busy this machine is: how long programs waited for processors and
// for memory, the load, and the available memory.
package machine

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// interval is the minimum time between two readings of the system's counters.
const interval = 100 * time.Millisecond

// Sampler reads the counters of the system, at most every 100 ms: callers in between share a
// reading. The zero value reads those of this machine. It is safe for concurrent use.
type Sampler struct {
	// proc is the directory of the counters; empty means /proc.
	proc string

	mu   sync.Mutex // guards the fields below
	last Sample
	buf  [4096]byte
}

// NewSampler returns a sampler that reads the counters in a directory like /proc of Linux.
func NewSampler(proc string) *Sampler { return &Sampler{proc: proc} }

// Sample is one reading of the counters.
type Sample struct {
	// At is the time of the reading. It is zero before the first one.
	At time.Time
	// CPUWait and MemoryWait are how long, since the system started, some program waited for a
	// processor or for memory. They are negative if the system does not count it.
	CPUWait, MemoryWait time.Duration
	// Load is the mean number of programs over the last minute that ran or waited to run,
	// divided by the number of processors. MemoryFree is the share of the memory that is
	// available. Both are negative if unknown.
	Load, MemoryFree float64
}

// Sample returns a reading that is at most 100 ms old.
func (s *Sampler) Sample() Sample { return s.sampleAt(time.Now()) }

func (s *Sampler) sampleAt(now time.Time) Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.last.At); s.last.At.IsZero() || since >= interval || since < 0 {
		s.last = s.readLocked(now)
	}
	return s.last
}

func (s *Sampler) readLocked(now time.Time) Sample {
	r := Sample{At: now, CPUWait: -1, MemoryWait: -1, Load: -1, MemoryFree: -1}
	proc := s.proc
	if proc == "" {
		if runtime.GOOS != "linux" {
			r.Load = systemLoad()
			return r
		}
		proc = "/proc"
	}
	if total, ok := parsePressure(s.fileLocked(proc + "/pressure/cpu")); ok {
		r.CPUWait = total
	}
	if total, ok := parsePressure(s.fileLocked(proc + "/pressure/memory")); ok {
		r.MemoryWait = total
	}
	if load, ok := parseLoad(s.fileLocked(proc + "/loadavg")); ok {
		r.Load = load / float64(runtime.NumCPU())
	}
	if share, ok := parseMemory(s.fileLocked(proc + "/meminfo")); ok {
		r.MemoryFree = share
	}
	return r
}

// fileLocked returns the start of a file until the next call; nil if it cannot be read.
func (s *Sampler) fileLocked(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	n, err := io.ReadFull(f, s.buf[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return s.buf[:n]
}

// maxPressure is the largest total of a pressure file that counts, a century.
const maxPressure = 100 * 365 * 24 * time.Hour

// parsePressure returns the time of the line "some" of a file in /proc/pressure, such as
//
//	some avg10=0.00 avg60=1.53 avg300=0.40 total=248424569
//
// whose total is in microseconds.
func parsePressure(text []byte) (time.Duration, bool) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("some "))
		if !ok {
			continue
		}
		for field := range bytes.FieldsSeq(rest) {
			if total, ok := bytes.CutPrefix(field, []byte("total=")); ok {
				n, err := strconv.ParseInt(string(total), 10, 64)
				if err != nil || n < 0 || n > maxPressure.Microseconds() {
					return 0, false
				}
				return time.Duration(n) * time.Microsecond, true
			}
		}
	}
	return 0, false
}

// parseLoad returns the load average of the last minute in /proc/loadavg, such as
//
//	0.25 1.36 1.05 2/102 23488
func parseLoad(text []byte) (float64, bool) {
	for field := range bytes.FieldsSeq(text) {
		load, err := strconv.ParseFloat(string(field), 64)
		return load, err == nil && load >= 0 && load < 1e9
	}
	return 0, false
}

// parseMemory returns the share of the memory that is available according to /proc/meminfo, whose
// lines look like
//
//	MemAvailable:   24059888 kB
func parseMemory(text []byte) (share float64, ok bool) {
	total, available := int64(-1), int64(-1)
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		at := &total
		switch string(name) {
		case "MemTotal":
		case "MemAvailable":
			at = &available
		default:
			continue
		}
		for field := range bytes.FieldsSeq(value) {
			n, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return 0, false
			}
			*at = n
			break
		}
	}
	if total <= 0 || available < 0 || available > total {
		return 0, false
	}
	return float64(available) / float64(total), true
}
