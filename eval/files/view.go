package files

// A View is the disk with an editor's unsaved files over it. The zero value is the disk.
type View struct {
	// Overlay holds the unsaved content of files that are open in an editor, by absolute path.
	// It can be nil.
	Overlay map[string][]byte
	// Accessed is called with the absolute path of each file that is read or looked for, and of
	// each directory that is searched. Nil disables the calls.
	Accessed func(path string)
}

// Note calls Accessed with each path.
func (v View) Note(paths ...string) {
	if v.Accessed == nil {
		return
	}
	for _, path := range paths {
		v.Accessed(path)
	}
}

// Read notes a path and returns the unsaved content of its file. Without such content, it calls
// read. Content of more than limit bytes gives [ErrTooLarge].
func (v View) Read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	v.Note(path)
	if data, ok := v.Overlay[path]; ok {
		return data, CheckBytes(int64(len(data)), limit)
	}
	return read(path, limit)
}
