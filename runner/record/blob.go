package record

// Blob names a content that a run keeps: by its hash, and where it is.
type Blob struct {
	Hash   string `json:"hash"`
	Size   int64  `json:"size"`             // of the content, in bytes
	At     int64  `json:"at,omitempty"`     // offset in the file of contents
	Length int64  `json:"length,omitempty"` // of what is there, in bytes; 0 for no content at all
}
