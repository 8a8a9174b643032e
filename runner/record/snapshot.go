package record

// Snapshot is a workspace as the executor left it.
type Snapshot struct {
	// Entries are in lexical order; a directory precedes its contents.
	Entries []SnapshotEntry `json:"entries"`
	// Incomplete is the reason why Entries may be incomplete.
	Incomplete string `json:"incomplete,omitempty"`
	// Destroyed describes how the agent deleted or replaced its workspace. It is empty when the
	// workspace was left in place. Entries are the contents of the original workspace.
	Destroyed string `json:"destroyed,omitempty"`
	// Removed lists files that existed at the start of the attempt but not at its end. Before is
	// their content. Files in parts that Entries does not cover are not listed.
	Removed []SnapshotEntry `json:"removed,omitempty"`
}

// SnapshotEntry is a file, directory or link in a workspace.
type SnapshotEntry struct {
	// Path is relative to the workspace, with slashes.
	Path string `json:"path"`
	// Type is file, dir, link or other.
	Type string `json:"type"`
	// Mode contains the permission bits.
	Mode uint32 `json:"mode,omitempty"`
	// Link is the target of a link.
	Link string `json:"link,omitempty"`
	// Blob is the content of a file; nil when it was not kept.
	*Blob
	// Omitted is the reason why the content of a file or a directory was not kept.
	Omitted string `json:"omitted,omitempty"`
	// Given describes a file that the workspace contained at the start of the attempt, from the
	// task or the executor. It is empty for files that were added later.
	Given Given `json:"given,omitempty"`
	// Before is the initial content of such a file, if it differs from the current one; nil when
	// it was not kept.
	Before *Blob `json:"before,omitempty"`
}

// Given is the fate of a file that an attempt started with.
type Given string

// The values of Given for files that still exist.
const (
	GivenSame    Given = "same"
	GivenChanged Given = "changed"
	// GivenUnknown marks a file whose initial or current content was not kept.
	GivenUnknown Given = "unknown"
)

// The types of entries.
const (
	EntryFile  = "file"
	EntryDir   = "dir"
	EntryLink  = "link"
	EntryOther = "other"
)

// Blob identifies a content that a run stores: by its hash and its position.
type Blob struct {
	Hash   string `json:"hash"`
	Size   int64  `json:"size"`             // of the content, in bytes
	At     int64  `json:"at,omitempty"`     // offset in the file of contents
	Length int64  `json:"length,omitempty"` // stored size, in bytes; 0 when no content is stored
}
