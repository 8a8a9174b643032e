package record

// Snapshot is a workspace as the executor left it.
type Snapshot struct {
	// Entries are in lexical order, directories before what is in them.
	Entries []SnapshotEntry `json:"entries"`
	// Incomplete says why there may be more than Entries tell.
	Incomplete string `json:"incomplete,omitempty"`
	// Destroyed says what the agent did to its workspace, which it deleted or
	// replaced; empty when it was left in place. Entries are what was in it.
	Destroyed string `json:"destroyed,omitempty"`
	// Removed are files that were there when the attempt began and gone when it
	// ended; Before is their content. Those of which Entries cannot tell are not
	// among them.
	Removed []SnapshotEntry `json:"removed,omitempty"`
}

// SnapshotEntry is one thing in a workspace.
type SnapshotEntry struct {
	// Path is relative to the workspace, with slashes.
	Path string `json:"path"`
	// Type is file, dir, link or other.
	Type string `json:"type"`
	// Mode are the permission bits.
	Mode uint32 `json:"mode,omitempty"`
	// Link is where a link leads.
	Link string `json:"link,omitempty"`
	// Blob is the content of a file; nil when it was not kept.
	*Blob
	// Omitted says why the content of a file, or what is below a directory, was not kept.
	Omitted string `json:"omitted,omitempty"`
	// Given reports a file that the workspace held when the attempt began, of the
	// task or of the executor; empty for what came later.
	Given Given `json:"given,omitempty"`
	// Before is what such a file held at the beginning, if that is not what
	// it holds now; nil when it was not kept.
	Before *Blob `json:"before,omitempty"`
}

// Given says what became of a file that an attempt began with.
type Given string

// What can become of such a file that is still there.
const (
	GivenSame    Given = "same"
	GivenChanged Given = "changed"
	// GivenUnknown is a file whose content, now or then, was not kept.
	GivenUnknown Given = "unknown"
)

// The types of entries.
const (
	EntryFile  = "file"
	EntryDir   = "dir"
	EntryLink  = "link"
	EntryOther = "other"
)

// Blob names a content that a run keeps: by its hash, and where it is.
type Blob struct {
	Hash   string `json:"hash"`
	Size   int64  `json:"size"`             // of the content, in bytes
	At     int64  `json:"at,omitempty"`     // offset in the file of contents
	Length int64  `json:"length,omitempty"` // of what is there, in bytes; 0 for no content at all
}
