package runner

import (
	"context"
	"os"

	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/provider"
)

func TakeSnapshot(ctx context.Context, dir string, blobs *journal.Blobs, secrets *provider.Redactor) *Snapshot {
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()
	return takeSnapshot(ctx, root, nil, blobs, secrets)
}

// DigestOf names what an agent did in a run.
func DigestOf(runID, output string, transcript []executor.Entry) string {
	return newNormalizer(runID).digest(output, transcript)
}
