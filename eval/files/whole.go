package files

import (
	"io"
	"os"
	"path/filepath"
)

// WriteWhole replaces the file at path, or creates it, by what write writes. Readers get the old
// file or the new one and never a part, also when this process is killed. Only this user can read
// the new file. Its directory must exist.
//
// sync is called with the complete file before it gets its name. It can make the content survive a
// power failure; nil leaves that to the operating system. Files that users name need [Replace],
// which keeps their permissions and refuses files of waza.
func WriteWhole(path string, write func(io.Writer) error, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // its mode is 0600
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil && sync != nil {
		err = sync(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
