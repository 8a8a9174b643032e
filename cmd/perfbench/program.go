package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

var programMeasure = measure{
	title: "Size",
	rows: []row{
		{name: "size of the program", unit: "MB", target: target{most: 48}, guarded: true},
		{name: "linked packages", unit: "", guarded: true},
	},
	how: "The stripped program as `make build` builds it, in MB of 1,000,000 bytes, and the number of packages that " +
		"`go list -deps` lists for it, including those of the standard library.",
	run: programSize,
}

func programSize(ctx context.Context, b *bench) ([]figure, error) {
	info, err := os.Stat(b.program)
	if err != nil {
		return nil, err
	}
	flag, err := b.overlayFlag(b.overlay)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", flag, "./cmd/waza")
	cmd.Dir = b.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return withoutFloor(float64(info.Size())/1e6, float64(bytes.Count(out, []byte("\n")))), nil
}
