// Fleetsim simulates a fleet of workers from measured costs, and reports which part is the
// bottleneck: a stream of the server, the object store, the journal of a run, or its owner. It
// writes docs/scale.md.
//
// Run it as `go run ./cmd/fleetsim -write docs/scale.md`. The costs are in costs.go;
// `-measure` measures those of NATS on this machine. Each row of a table has its own seed, so
// the page is the same each time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if text := os.Getenv(serverVariable); text != "" {
		return serve(text)
	}
	operations := flag.Int("measure", 0, "measure and print the costs of NATS with `N` operations of each kind")
	write := flag.String("write", "", "write the page to `FILE`")
	flag.Parse()
	if *operations > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		return measureAll(ctx, os.Stdout, *operations)
	}
	list := sections()
	text := page(list, outcomes(list, 0))
	if *write == "" {
		fmt.Print(text)
		return nil
	}
	return os.WriteFile(*write, []byte(text), 0o644)
}
