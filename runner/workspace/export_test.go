package workspace

import (
	"context"
	"os"

	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
)

func TakeSnapshot(ctx context.Context, dir string, blobs *journal.Blobs, secrets *secrets.Redactor) *record.Snapshot {
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()
	return takeSnapshot(ctx, root, nil, blobs, secrets)
}

var Blocked = blocked
