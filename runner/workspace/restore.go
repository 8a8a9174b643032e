package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"waza/runner/journal"
	"waza/runner/record"
)

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
}

func sortRemoved(entries []record.SnapshotEntry) {
	slices.SortFunc(entries, func(a, b record.SnapshotEntry) int { return cmp.Compare(a.Path, b.Path) })
}

// Restore creates a workspace from a snapshot. Files that were not recorded are missing, but not
// their directories; lost reports them. Nothing is written outside of dir, whatever the snapshot
// contains.
func Restore(s *record.Snapshot, dir string, blobs *journal.BlobReader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for i := range s.Entries {
		if err := restoreEntry(root, &s.Entries[i], blobs); err != nil {
			return fmt.Errorf("%s: %w", s.Entries[i].Path, err)
		}
	}
	// Permissions are set last, because a directory may not be writable.
	for _, e := range slices.Backward(s.Entries) {
		if e.Type != record.EntryDir && e.Type != record.EntryFile {
			continue
		}
		if err := root.Chmod(filepath.FromSlash(e.Path), fs.FileMode(e.Mode).Perm()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return nil
}

func restoreEntry(root *os.Root, e *record.SnapshotEntry, blobs *journal.BlobReader) error {
	name := filepath.FromSlash(e.Path)
	if above := path.Dir(e.Path); above != "." { // it precedes the entry, unless someone changed the record
		if err := root.MkdirAll(filepath.FromSlash(above), 0o700); err != nil {
			return err
		}
	}
	switch {
	case e.Type == record.EntryDir:
		return root.MkdirAll(name, 0o700)
	case e.Omitted != "":
		return nil
	case e.Type == record.EntryLink:
		return root.Symlink(e.Link, name)
	case e.Type == record.EntryFile && e.Blob != nil:
		data, err := blobs.Get(*e.Blob)
		if err != nil {
			return err
		}
		return root.WriteFile(name, data, 0o600)
	}
	return fmt.Errorf("an entry of type %q cannot be restored", e.Type)
}
