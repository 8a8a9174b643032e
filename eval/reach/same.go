package reach

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"waza/eval/files"
)

// Limits of [Same]: larger files and directories count as different.
const (
	maxComparedFiles = 1000
	maxComparedBytes = 64 << 20
)

// Same reports whether two files have the same content, or two directories the same files with
// the same content. It returns false if there is too much to compare or if reading fails.
func Same(a, b string) bool {
	if !files.IsDir(a) || !files.IsDir(b) {
		left := int64(maxComparedBytes)
		return sameFile(a, b, &left)
	}
	inA, ok := listed(a)
	inB, okB := listed(b)
	if !ok || !okB || len(inA) != len(inB) {
		return false
	}
	left := int64(maxComparedBytes)
	for i, rel := range inA {
		if rel != inB[i] || !sameFile(filepath.Join(a, rel), filepath.Join(b, rel), &left) {
			return false
		}
	}
	return true
}

// listed returns the files below a directory, sorted by name; ok is false if there are too many.
func listed(dir string) (list []string, ok bool) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() { // a link can lead anywhere
			return fs.ErrInvalid
		}
		rel, err := filepath.Rel(dir, path)
		if list = append(list, rel); len(list) > maxComparedFiles {
			return fs.ErrInvalid
		}
		return err
	})
	return list, err == nil
}

// sameFile compares two regular files within the remaining budget of bytes.
func sameFile(a, b string, left *int64) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA != nil || errB != nil || !infoA.Mode().IsRegular() || !infoB.Mode().IsRegular() || infoA.Size() != infoB.Size() {
		return false
	}
	if os.SameFile(infoA, infoB) {
		return true
	}
	if *left -= infoA.Size(); *left < 0 {
		return false
	}
	contentA, errA := readAll(a, infoA.Size())
	contentB, errB := readAll(b, infoB.Size())
	return errA == nil && errB == nil && bytes.Equal(contentA, contentB)
}

func readAll(path string, size int64) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}
