package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

var fleetMeasure = measure{
	title: "Fleet",
	rows:  []row{{name: "fleet overhead per trial", unit: "µs", target: target{floors: 1}}},
	how: "`BenchmarkOverhead` of `runner/fleet` runs 20,000 mock trials on a worker with 200 slots in the same process, and " +
		"without a fleet. The figure is the difference of their wall times, divided by the trials.",
	floor: "The same benchmark publishes and consumes as many orders and results of 2 KB over bare JetStream.",
	slow:  true,
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		all, err := medians(3, func() ([]float64, error) {
			values, err := b.benchmark(ctx, "./runner/fleet", "BenchmarkOverhead")
			if err != nil {
				return nil, err
			}
			return []float64{values["fleet-µs/trial"] - values["local-µs/trial"], values["bare-µs/trial"]}, nil
		})
		if err != nil {
			return nil, err
		}
		return []figure{{all[0][0], all[0][1]}}, nil
	},
}

// benchmark runs a benchmark of a package once, and returns its values by their units.
func (b *bench) benchmark(ctx context.Context, pkg, name string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-ldflags=-s -w", "-run=^$", "-bench=^"+name+"$", "-benchtime=1x", pkg)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // the name, the number of iterations, and pairs of value and unit
		if len(fields) < 4 || !strings.HasPrefix(fields[0], name) {
			continue
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return values, nil
	}
	return nil, fmt.Errorf("%s printed no figures:\n%s", name, out)
}
