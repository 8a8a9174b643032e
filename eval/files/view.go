package files

// View is what a reader of files sees: the disk, with an editor's unsaved files
// over it. The zero value is the disk.
type View struct {
	// Overlay holds the content of files that an editor has changed but not
	// saved, by absolute path. Nil means that the disk is right.
	Overlay map[string][]byte
	// Looked is called with the absolute path of each file that is read or looked
	// for, and of each directory that is searched. Nil is fine.
	Looked func(path string)
}

// Note calls Looked with each path.
func (v View) Note(paths ...string) {
	if v.Looked == nil {
		return
	}
	for _, path := range paths {
		v.Looked(path)
	}
}

// Read notes a path and returns the unsaved content of its file. Where there is
// none it calls read. More than limit bytes are [ErrTooLarge].
func (v View) Read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	v.Note(path)
	if data, ok := v.Overlay[path]; ok {
		return data, CheckBytes(int64(len(data)), limit)
	}
	return read(path, limit)
}
