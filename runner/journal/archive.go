package journal

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Archive writes the run's directory as a compressed tar file, in which everything
// stands below a directory that is named by the run. Workspaces are none of it, nor
// what is being written at the moment. Of a run that goes on it holds what there
// was when it came to each file.
func (r *Run) Archive(w io.Writer) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	if err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.dir, path)
		if err != nil || rel == "." {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") { // files before they get their name
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		return archiveFile(out, path, filepath.ToSlash(filepath.Join(filepath.Base(r.dir), rel)))
	}); err != nil {
		return fmt.Errorf("archive: %w", r.gone(err))
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return zip.Close()
}

// archiveFile adds a file, as long as it is now: more may come.
func archiveFile(out *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it had its name taken away meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := &tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	if _, err := io.CopyN(out, f, info.Size()); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it became shorter while it was read; try again")
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
