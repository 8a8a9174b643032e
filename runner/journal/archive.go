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

// Archive writes the run's directory as a compressed tar file. All entries are below a directory
// named by the run. The archive contains no workspaces and no files that are being written. For
// an active run, each file has its content at the time when Archive reads it.
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
		if strings.HasPrefix(e.Name(), ".") { // files that are not complete
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

// archiveFile adds a file with its current length; it may grow.
func archiveFile(out *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed in the meantime
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
			err = errors.New("the file shrank while it was read; try again")
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
