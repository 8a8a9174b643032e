// Fleetsim simulates a fleet of workers from measured costs, and reports which part is the
// bottleneck: a stream of the server, the object store, the journal of a run, or its owner. It
// writes docs/scale.md.
//
// Run it as `go run ./cmd/fleetsim -write docs/scale.md`. The costs are in costs.go;
// BenchmarkCosts measures those of NATS. Each row of a table has its own seed, so the page is the
// same each time.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.String("write", "", "write the page to `FILE`")
	flag.Parse()
	list := sections()
	text := page(list, outcomes(list, 0))
	if *write == "" {
		fmt.Print(text)
		return
	}
	if err := os.WriteFile(*write, []byte(text), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
