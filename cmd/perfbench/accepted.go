package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// acceptedFile holds the accepted figures: those that the guard compares, and those that the page
// shows. Its path is relative to the root of the module.
const acceptedFile = "cmd/perfbench/accepted.json"

// accepted is the content of acceptedFile.
type accepted struct {
	Guard guard `json:"guard"`
	// Table are the figures of the page, with the machine of the last complete run.
	Table results `json:"table"`
	// Apart are the machines of rows that depend on the machine and were measured later, by name.
	Apart map[string]machine `json:"apart,omitempty"`
}

// results are the figures of a run of this program.
type results struct {
	Machine machine           `json:"machine"`
	Rows    map[string]figure `json:"rows"` // by the name of the row
}

// A machine describes where figures were measured.
type machine struct {
	Date      string `json:"date"`
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	// Load is the load average at the start, empty where the system has none.
	Load string `json:"load,omitempty"`
	// Promptfoo is its version, empty if it was not measured.
	Promptfoo string `json:"promptfoo,omitempty"`
}

// thisMachine describes the machine of this process.
func thisMachine() machine {
	m := machine{
		Date: time.Now().UTC().Format(time.DateOnly), Processor: "unknown", Cores: runtime.NumCPU(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(text), " ")
	}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			m.Processor = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// write writes the figures as JSON.
func (r results) write(file string) error { return writeJSON(file, r) }

func (a accepted) write(file string) error { return writeJSON(file, a) }

func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// readAccepted reads the accepted figures. Without a file, none are accepted.
func readAccepted(file string) (a accepted, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// take accepts all measured figures, and keeps those that were not measured.
func (a *accepted) take(measured results) {
	if a.Table.Rows == nil {
		a.Table.Rows = map[string]figure{}
	}
	maps.Copy(a.Table.Rows, measured.Rows)
	promptfoo, apart, complete := cmp.Or(measured.Machine.Promptfoo, a.Table.Machine.Promptfoo), map[string]machine{}, true
	for _, m := range measures() {
		for _, r := range m.rows {
			_, known := a.Table.Rows[r.name]
			_, now := measured.Rows[r.name]
			switch {
			case m.guarded() || !known:
			case now:
				apart[r.name] = measured.Machine
			default:
				complete = false
			}
		}
	}
	if complete {
		a.Table.Machine, a.Apart = measured.Machine, nil
	} else if len(apart) > 0 {
		if a.Apart == nil {
			a.Apart = map[string]machine{}
		}
		maps.Copy(a.Apart, apart)
	}
	a.Table.Machine.Promptfoo = promptfoo
	if !a.Guard.comparable(measured.Machine) {
		a.Guard = guard{Go: minor(measured.Machine.Go), Platform: measured.Machine.Platform}
	}
	if a.Guard.Figures == nil {
		a.Guard.Figures = map[string]float64{}
	}
	for _, r := range guardedRows() {
		if f, ok := measured.Rows[r.name]; ok {
			a.Guard.Figures[r.name] = f.Value
		}
	}
}
