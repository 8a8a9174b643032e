package formats

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"waza/eval/files"
	"waza/runner/record"
	"waza/runner/report"
)

// ErrForeign refuses to replace a file that no report of the same format has written.
var ErrForeign = errors.New("not a file of an earlier report; name another directory")

// WriteFolder writes the files of a report into a directory, which it creates. It replaces files of
// earlier reports of the same format and removes those that are no longer needed, but no others.
// It returns the path of the folder that holds the files.
func WriteFolder(dir string, f Format, h record.Handle) (string, error) {
	if err := MakeFolder(dir); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	return writeFolder(root, f, h)
}

// WriteFolderWithin is like [WriteFolder] for a directory below another one. Links that lead out of
// that are refused.
func WriteFolderWithin(base, dir string, f Format, h record.Handle) (string, error) {
	rel, err := filepath.Rel(base, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &fs.PathError{Op: "write", Path: dir, Err: files.ErrEscapes}
	}
	if err := files.CheckState(dir); err != nil {
		return "", &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	outer, err := os.OpenRoot(base)
	if err != nil {
		return "", err
	}
	defer outer.Close()
	if err := outer.MkdirAll(rel, 0o777); err != nil {
		return "", &fs.PathError{Op: "write", Path: dir, Err: files.WithoutPath(err)}
	}
	root, err := outer.OpenRoot(rel)
	if err != nil {
		return "", &fs.PathError{Op: "write", Path: dir, Err: files.WithoutPath(err)}
	}
	defer root.Close()
	return writeFolder(root, f, h)
}

// MakeFolder creates the directory of a report, if it does not exist.
func MakeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return &fs.PathError{Op: "write", Path: dir, Err: errors.New("not a directory")}
	}
	return files.MakeDir(dir, 0o777)
}

func writeFolder(root *os.Root, f Format, h record.Handle) (string, error) {
	if f.Iteration == "" {
		return root.Name(), fillFolder(root, f, h)
	}
	name, err := iteration(root, f, h.ID())
	if err != nil {
		return "", err
	}
	within, err := root.OpenRoot(name)
	if err != nil {
		return "", err
	}
	defer within.Close()
	return within.Name(), fillFolder(within, f, h)
}

// iteration returns the name of the run's folder, and creates it if necessary.
func iteration(root *os.Root, f Format, runID string) (string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return "", err
	}
	last := 0
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), f.Iteration)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 || n > 1<<30 {
			continue
		}
		last = max(last, n)
		if within, err := root.OpenRoot(e.Name()); err == nil {
			own := readInventory(within, f).RunID == runID
			within.Close()
			if own {
				return e.Name(), nil
			}
		}
	}
	for { // another process can write a report here at the same time
		last++
		name := f.Iteration + strconv.Itoa(last)
		if err := root.Mkdir(name, 0o777); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// fillFolder writes the files. Until it has finished, the inventory also lists the old files.
func fillFolder(root *os.Root, f Format, h record.Handle) error {
	old := readInventory(root, f)
	now := inventory{Format: f.Name, RunID: h.ID()}
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	if damage != nil {
		now.Damage = damage.String()
	}
	list, err := now.start(root, f, old)
	if err != nil {
		return err
	}
	defer list.Close()
	err = f.WriteFiles(func(name string, write func(io.Writer) error) error {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is no name of a file in a report", name)
		}
		if now.has(name) {
			return fmt.Errorf("the report writes %s twice", name)
		}
		if _, err := root.Lstat(name); err == nil && !old.owns(root, name) {
			return &fs.PathError{Op: "write", Path: filepath.Join(root.Name(), name), Err: ErrForeign}
		}
		return now.write(root, list, name, write)
	}, h)
	if err != nil {
		return err
	}
	for _, e := range old.entries {
		if !now.has(e.Name) && old.owns(root, e.Name) {
			removeOld(root, e.Name)
		}
	}
	return now.replace(root, f)
}

// removeOld removes a file of an earlier report, and the folders that are empty then. Files of waza
// stay, even if the inventory names them.
func removeOld(root *os.Root, name string) {
	dir := filepath.Dir(name)
	if !filepath.IsLocal(name) || files.CheckState(filepath.Join(root.Name(), dir)) != nil || root.Remove(name) != nil {
		return
	}
	for dir != "." && root.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// An inventory lists the files that a report wrote. Its file is a line of JSON for the report, and a
// line for each file.
type inventory struct {
	Format string `json:"format"`
	RunID  string `json:"runId"`
	// Damage describes the damage of the run's record.
	Damage string `json:"damage,omitempty"`

	entries []entry
	known   map[string][]string // the hashes of files by name
}

// An entry is a file of a report. The hash shows later whether it is still the same file: anyone can
// write an inventory that names files of others.
type entry struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// inventoryFile returns the name of the inventory of a format.
func inventoryFile(f Format) string { return ".waza-" + f.Name + ".jsonl" }

// maxInventory limits the size of an inventory in bytes.
const maxInventory = 256 << 20

// readInventory returns the inventory in a folder. Without a file, it is empty.
func readInventory(root *os.Root, f Format) *inventory {
	v := &inventory{}
	file, err := files.OpenIn(root, inventoryFile(f))
	if err != nil {
		return v
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, maxInventory))
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), v) != nil || v.Format != f.Name {
		return &inventory{}
	}
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			v.add(e)
		}
	}
	return v
}

func (v *inventory) has(name string) bool { return len(v.known[name]) > 0 }

func (v *inventory) add(e entry) {
	if v.known == nil {
		v.known = map[string][]string{}
	}
	if !slices.Contains(v.known[e.Name], e.SHA256) {
		v.known[e.Name] = append(v.known[e.Name], e.SHA256)
		v.entries = append(v.entries, e)
	}
}

// owns reports whether a file is the one that the report wrote. No report writes names at its top that
// start with a dot.
func (v *inventory) owns(root *os.Root, name string) bool {
	if !v.has(name) || strings.HasPrefix(name, ".") {
		return false
	}
	file, err := files.OpenIn(root, name)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return err == nil && slices.Contains(v.known[name], hex.EncodeToString(sum.Sum(nil)))
}

// write writes a file, and adds it to the list before it gets its name.
func (v *inventory) write(root *os.Root, list io.Writer, name string, write func(io.Writer) error) error {
	out, err := files.ReplaceIn(root, name)
	return fill(out, err, func(w io.Writer) error {
		sum := sha256.New()
		if err := write(io.MultiWriter(w, sum)); err != nil {
			return err
		}
		e := entry{name, hex.EncodeToString(sum.Sum(nil))}
		v.add(e)
		return json.NewEncoder(list).Encode(e)
	})
}

// start replaces the inventory by one with the old files, and returns its file for further files.
func (v *inventory) start(root *os.Root, f Format, old *inventory) (*os.File, error) {
	first := *v
	first.entries = old.entries
	if err := first.replace(root, f); err != nil {
		return nil, err
	}
	return root.OpenFile(inventoryFile(f), os.O_WRONLY|os.O_APPEND, 0)
}

func (v *inventory) replace(root *os.Root, f Format) error {
	out, err := files.ReplaceIn(root, inventoryFile(f))
	return fill(out, err, func(w io.Writer) error {
		buffered := bufio.NewWriter(w)
		lines := json.NewEncoder(report.JSONWriter(buffered))
		if err := lines.Encode(v); err != nil {
			return err
		}
		for _, e := range v.entries {
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
		return buffered.Flush()
	})
}
