package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// An experiment measures one share, such as the share of intervals that contain the true value.
type experiment struct {
	// The measured share and the design; together they name a row of the table.
	what, design string
	// least and most are the limits of the share that waza promises. Both are 0 if waza promises
	// nothing, and the row is only for information.
	least, most float64
	// times is the number of draws. 0 means that run counts instead of drawing.
	times int
	// run returns in how many of the given number of times the measured event occurred. rng has
	// the experiment's own seed.
	run func(rng *rand.Rand, times int) float64
}

// An event is something that can happen in a case. of returns 1 if it did, or a number whose mean
// is measured.
type event[T any] struct {
	what        string
	least, most float64
	of          func(T) float64
}

// together returns an experiment for each event. The experiments share their cases, so that each
// case is drawn and evaluated once. The design determines their seed.
func together[T any](design string, times int, draw func(*rand.Rand) T, events ...event[T]) []experiment {
	var mu sync.Mutex // guards the fields below; held while cases are drawn
	var sums []float64
	drawn := 0
	var list []experiment
	for i, e := range events {
		list = append(list, experiment{what: e.what, design: design, least: e.least, most: e.most, times: times, run: func(
			_ *rand.Rand, times int,
		) float64 {
			mu.Lock()
			defer mu.Unlock()
			if drawn != times {
				seed := fnv.New64a()
				fmt.Fprint(seed, design)
				rng := rand.New(rand.NewPCG(seed.Sum64(), 3))
				sums, drawn = make([]float64, len(events)), times
				for range times {
					x := draw(rng)
					for j := range events {
						sums[j] += events[j].of(x)
					}
				}
			}
			return sums[i]
		}})
	}
	return list
}

// byEvent reorders experiments of several designs with the same events: first those of the first
// event. Experiments that share cases are then far apart and do not wait for each other.
func byEvent(designs [][]experiment) (list []experiment) {
	for i := range designs[0] {
		for _, d := range designs {
			list = append(list, d[i])
		}
	}
	return list
}

// share returns the function that returns 1 if the condition holds, else 0.
func share[T any](holds func(T) bool) func(T) float64 {
	return func(x T) float64 {
		if holds(x) {
			return 1
		}
		return 0
	}
}

// A row is an experiment with its result.
type row struct {
	experiment
	share float64
	drawn int // number of draws; 0 if counted
}

// noise returns how far a share can be off by chance: three standard errors at the bound.
func (r row) noise(bound float64) float64 {
	if r.drawn == 0 {
		return 1e-9
	}
	return 3 * math.Sqrt(bound*(1-bound)/float64(r.drawn))
}

// holds reports whether the share keeps the promise, up to chance.
func (r row) holds() bool {
	return (r.most == 0 || r.share <= r.most+r.noise(r.most)) && (r.least == 0 || r.share >= r.least-r.noise(r.least))
}

// measure runs the wanted experiments, as many at once as there are processors, and returns their
// rows. A part of 1 draws each experiment its full number of times. The seed of an experiment is
// its place in the list.
func measure(list []experiment, part float64, wanted func(experiment) bool) []row {
	rows := make([]row, len(list))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				e := list[i]
				times := int(math.Ceil(float64(e.times) * part))
				rng := rand.New(rand.NewPCG(uint64(i+1), 1))
				if rows[i] = (row{e, e.run(rng, times), times}); times > 0 {
					rows[i].share /= float64(times)
				}
			}
		})
	}
	for i := range list {
		if wanted(list[i]) {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	return slices.DeleteFunc(rows, func(r row) bool { return r.run == nil })
}

func all(experiment) bool { return true }

func (r row) cells() []string {
	promise := "–"
	switch {
	case r.least > 0:
		promise = "≥ " + percent(r.least)
	case r.most > 0:
		promise = "≤ " + percent(r.most)
	}
	drawn := "counted"
	if r.drawn > 0 {
		drawn = fmt.Sprint(r.drawn)
	}
	return []string{r.what, r.design, promise, percent(r.share), drawn}
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// line returns the row of the table as Markdown.
func (r row) line() string { return "| " + strings.Join(r.cells(), " | ") + " |" }

// print writes the rows as a table in Markdown.
func print(w io.Writer, rows []row) error {
	lines := []string{}
	for _, r := range rows {
		lines = append(lines, r.line())
	}
	return printLines(w, lines)
}

func printLines(w io.Writer, lines []string) error {
	_, err := fmt.Fprintln(w, strings.Join(append([]string{"| what | design | promised | measured | drawn |", "|---|---|---|---|---|"}, lines...), "\n"))
	return err
}

// The lines before and after the table.
const (
	tableStart = "<!-- make simulate writes this table -->"
	tableEnd   = "<!-- end of the table -->"
)

// replaceTable replaces the table of a document with the rows of the experiments. It keeps the rows of
// experiments that were not measured. The error names those without any row.
func replaceTable(path string, list []experiment, rows []row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(tableStart))
	_, after, okEnd := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !okEnd {
		return fmt.Errorf("%s: no table between %q and %q", path, tableStart, tableEnd)
	}
	table, _, _ := bytes.Cut(rest, []byte(tableEnd))
	known := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if cells := strings.Split(line, " | "); len(cells) == 5 {
			known[cells[0]+" | "+cells[1]] = strings.TrimSpace(line)
		}
	}
	for _, r := range rows {
		known["| "+r.what+" | "+r.design] = r.line()
	}
	var lines []string
	for _, e := range list {
		line, ok := known["| "+e.what+" | "+e.design]
		if !ok {
			return fmt.Errorf("%s has no row for %s, %s; measure it, too", path, e.what, e.design)
		}
		lines = append(lines, line)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(tableStart + "\n\n")
	if err := printLines(&out, lines); err != nil {
		return err
	}
	out.WriteString("\n" + tableEnd)
	out.Write(after)
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// broken returns an error that lists the rows that do not keep their promise.
func broken(rows []row) error {
	var errs []error
	for _, r := range rows {
		if !r.holds() {
			errs = append(errs, fmt.Errorf("promise broken: %s", strings.Join(r.cells(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// experiments returns all experiments, in the order of the table.
func experiments() []experiment {
	var list []experiment
	for _, of := range []func() []experiment{
		stopping, rates, suites, wins, stoppedRates, scores, differences, suiteDifferences, equivalence, ratios,
		agreement, alarms, findings, needed, cellsOfTunings, leftOut, commands, baselineRuns, gateRule,
		questions,
		decisions,
		sequences,
		plannedPowers,
		noises,
		shrinkage,
		subsets,
		judges,
	} {
		list = append(list, of()...)
	}
	return list
}
