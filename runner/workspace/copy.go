package workspace

import (
	"errors"
	"slices"

	"waza/eval/files"
	"waza/runner/journal"
	"waza/runner/record"
)

// CopySnapshot returns the snapshot with its contents copied to the store of to; nil for nil.
// Unreadable contents are recorded as missing.
func CopySnapshot(s *record.Snapshot, from *journal.BlobReader, to *Snapshotter) *record.Snapshot {
	if s == nil {
		return nil
	}
	c := *s
	c.Entries, c.Removed = copiedEntries(s.Entries, from, to), copiedEntries(s.Removed, from, to)
	return &c
}

func copiedEntries(entries []record.SnapshotEntry, from *journal.BlobReader, to *Snapshotter) []record.SnapshotEntry {
	list := slices.Clone(entries)
	for i := range list {
		e := &list[i]
		var err, lost error
		e.Blob, err = copiedBlob(e.Blob, from, to)
		if e.Before, lost = copiedBlob(e.Before, from, to); lost != nil && e.Given == record.GivenChanged {
			e.Given = record.GivenUnknown
		}
		if err != nil {
			e.Omitted = "not copied: " + files.WithoutPath(err).Error()
		}
	}
	return list
}

func copiedBlob(blob *record.Blob, from *journal.BlobReader, to *Snapshotter) (*record.Blob, error) {
	if blob == nil {
		return nil, nil
	}
	data, err := from.Get(*blob)
	if err != nil {
		return nil, errors.New("the content is damaged")
	}
	return to.put(data)
}
