// Perfbench measures waza from outside, as a client or a shell sees it: each figure beside its
// floor, measured in the same run. It prints a table, compares the figures that do not depend on
// the machine with accepted.json, and writes docs/performance.md.
//
// Run it as `go run ./cmd/perfbench`, or as make bench, make bench-accept and make performance do.
// A measure is in the file of its subject; measures.go lists them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if runHelper(os.Args) {
		return
	}
	var o options
	flag.StringVar(&o.program, "waza", "", "measure the program at `PATH` instead of building one")
	flag.BoolVar(&o.short, "short", false, "repeat less often, and leave out the measures that take minutes")
	flag.BoolVar(&o.guardOnly, "guard", false, "measure only the figures of the guard")
	flag.StringVar(&o.only, "run", "", "measure only rows that match `REGEXP`")
	flag.StringVar(&o.json, "json", "", "write all figures to `FILE`")
	flag.BoolVar(&o.accept, "accept", false, "record the measured figures as accepted instead of comparing them")
	flag.StringVar(&o.promptfoo, "promptfoo", "", "also measure the promptfoo that npm installed in `DIR`")
	flag.StringVar(&o.page, "write", "", "write the page to `FILE`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.main(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "perfbench:", err)
		os.Exit(1)
	}
}
