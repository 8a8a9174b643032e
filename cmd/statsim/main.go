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
	"regexp"
)

func main() {
	write := flag.String("write", "", "replace the table in `FILE`")
	long := flag.Bool("long", false, "measure only the verdicts of waza decide, with 100,000 draws per design")
	part := flag.Float64("part", 1, "draw each experiment only `SHARE` of its usual times")
	only := flag.String("only", "", "measure only the rows whose first column matches `REGEXP`, and keep the others of the table")
	flag.Parse()
	list := experiments()
	if *long {
		list = decisionsOf(contestsPerLongDesign)
	}
	err := simulate(list, *write, *part, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// simulate measures the experiments, and prints them. It replaces the table of the document unless
// its path is empty. The error lists broken promises.
func simulate(list []experiment, document string, part float64, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	rows := measure(list, part, func(e experiment) bool { return pattern.MatchString(e.what) })
	if err := print(os.Stdout, rows); err != nil {
		return err
	}
	if document != "" {
		if err := replaceTable(document, list, rows); err != nil {
			return err
		}
	}
	return broken(rows)
}
