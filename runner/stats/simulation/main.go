// Simulation measures what waza's numbers promise: how often the stopping rule and
// comparisons err, how often intervals hold what they are about, and whether as many
// trials as waza asks for decide. It draws trials whose probabilities are known,
// puts them through the code that evaluates runs, and writes a table.
//
// Run it as `go run ./runner/stats/simulation -write docs/statistics.md`. The
// experiments are in the files named after them; each begins with its own seed, so
// the table is the same each time.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.String("write", "", "replace the table in `FILE`")
	part := flag.Float64("part", 1, "draw `SHARE` of the times that each experiment asks for")
	flag.Parse()
	rows := measure(experiments(), *part)
	err := print(os.Stdout, rows)
	if err == nil && *write != "" {
		err = replaceTable(*write, rows)
	}
	if err == nil {
		err = broken(rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
