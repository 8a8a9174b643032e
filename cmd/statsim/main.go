// Statsim measures whether waza's numbers keep their promises: how often the stopping rule and
// comparisons err, how often intervals contain the true value, and whether the number of
// trials that waza asks for decides. It draws trials with known probabilities, evaluates them
// with the code that evaluates runs, and writes a table.
//
// Run it as `go run ./cmd/statsim -write docs/statistics.md`. The experiments are in the files
// named after them. Each starts with its own seed, so the table is always the same.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.String("write", "", "replace the table in `FILE`")
	part := flag.Float64("part", 1, "draw each experiment only `SHARE` of its usual times")
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
