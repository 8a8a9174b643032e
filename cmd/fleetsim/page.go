package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The fleet that the page describes.
const (
	manyWorkers = 1000
	slotsEach   = 25
	manyTrials  = 10_000_000
)

var lengths = []time.Duration{50 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// section is a table of the page: designs and their rows.
type section struct {
	title, before string
	header        []string
	rows          []row
	after         string
}

type row struct {
	cells  []string // first cells, before those of the outcome
	design design
}

// atOnce returns the number of concurrent trials of a design.
func (d design) atOnce() int { return min(d.population(), d.workers*d.slots) }

// enough sets the number of trials that is needed to determine the rate of a design.
func enough(d design) design {
	d.trials = max(8*d.atOnce(), 50_000)
	return d
}

// sections returns the simulated tables.
func sections() []section {
	one := section{
		title:  "One run",
		before: "One run on one server, with signed orders: its trials per second, and the bottleneck.",
		header: []string{"trials of", "workers", "trials per second", "efficiency", "bottleneck"},
		after: fmt.Sprintf("A run has at most %s trials with the fleet at once. %d workers with %d slots take that many. Further workers serve "+
			"other runs.", count(depth), (depth+slotsEach-1)/slotsEach, slotsEach),
	}
	for _, length := range lengths {
		for _, workers := range []int{8, 40, manyWorkers} {
			d := enough(design{workers: workers, slots: slotsEach, runs: 1, length: length, signed: true})
			one.rows = append(one.rows, row{[]string{short(length), count(workers)}, d})
		}
	}
	many := section{
		title: "A thousand workers and ten million trials",
		before: fmt.Sprintf("%s workers with %d slots, %s trials of %d runs, each with its own owner:",
			count(manyWorkers), slotsEach, count(manyTrials), manyRuns),
		header: []string{"trials of", "replicas", "time of all trials", "trials per second", "efficiency", "bottleneck"},
	}
	for _, length := range lengths[:4] {
		for _, replicas := range []int{1, 3} {
			d := design{workers: manyWorkers, slots: slotsEach, runs: manyRuns, length: length, replicas: replicas, signed: true, trials: manyTrials}
			many.rows = append(many.rows, row{[]string{short(length), fmt.Sprint(replicas)}, d})
		}
	}
	files := section{
		title: "Large results",
		before: fmt.Sprintf("Results beyond 256 KB travel through the object store. %s workers with %d slots, %d runs, trials of a minute:",
			count(manyWorkers), slotsEach, manyRuns),
		header: []string{"per trial", "replicas", "trials per second", "efficiency", "bottleneck"},
	}
	for _, megabytes := range []float64{0.1, 0.5, 1, 5} {
		for _, replicas := range []int{1, 3} {
			d := enough(design{
				workers: manyWorkers, slots: slotsEach, runs: manyRuns, length: time.Minute, replicas: replicas,
				signed: true, objects: megabytes,
			})
			files.rows = append(files.rows, row{[]string{fmt.Sprintf("%g MB", megabytes), fmt.Sprint(replicas)}, d})
		}
	}
	return []section{one, many, files}
}

// manyRuns is the number of runs that keep all slots of a thousand workers busy.
const manyRuns = (manyWorkers*slotsEach + depth - 1) / depth

// cellsOf returns the cells for an outcome.
func (r row) cellsOf(s section, o outcome) []string {
	cells := append([]string{}, r.cells...)
	if s.header[2] == "time of all trials" {
		cells = append(cells, short(o.took))
	}
	limit, bound := r.design.limit()
	what := resourceNames[limit]
	if o.rate < 0.9*bound {
		what += fmt.Sprintf(" (%.0f %% of what it allows)", 100*o.rate/bound)
	}
	return append(cells, number(o.rate), fmt.Sprintf("%.0f %%", 100*r.design.efficiency(o)), what)
}

// efficiency returns the share of time for which slots execute trials instead of waiting.
func (d design) efficiency(o outcome) float64 {
	return min(1, o.rate*d.length.Seconds()/float64(d.workers*d.slots))
}

// outcomes simulates all rows, two at a time. The seed of a row is its position.
func outcomes(list []section, most int) [][]outcome {
	all := make([][]outcome, len(list))
	var workers sync.WaitGroup
	room := make(chan struct{}, 2)
	for i, s := range list {
		all[i] = make([]outcome, len(s.rows))
		for j, r := range s.rows {
			if most > 0 && r.design.trials > most {
				continue
			}
			workers.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				all[i][j] = simulate(r.design, uint64(i*1000+j))
			})
		}
	}
	workers.Wait()
	return all
}

// page returns docs/scale.md.
func page(list []section, all [][]outcome) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s", head)
	for i, s := range list {
		p("## %s\n\n%s\n\n", s.title, s.before)
		table(&b, s.header)
		for j, r := range s.rows {
			table(&b, r.cellsOf(s, all[i][j]))
		}
		if s.after != "" {
			p("\n%s\n", s.after)
		}
		p("\n")
	}
	p("%s", start())
	p("%s", advice())
	p("%s", constants())
	p("%s", reality())
	return b.String()
}

// table writes a row of a table. After the first row, the header, it writes a separator line.
func table(b *strings.Builder, cells []string) {
	first := strings.HasSuffix(b.String(), "\n\n")
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	if first {
		fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(cells)))
	}
}

const head = `# Scale

After this page you know how many workers and trials a fleet can have, which part is the first bottleneck, and the remedy.

A simulation computed these tables from measured costs. The program is ` + "`cmd/fleetsim`" + `, and ` +
	"`make scale`" + ` writes this page.
[fleet.md](fleet.md) describes fleets.

A trial occupies these resources, one after the other:

1. its owner, which signs and publishes the order
2. the stream of orders, which stores and delivers it
3. a slot of a worker
4. the object store, if its result is large
5. the stream of results
6. its owner, which decodes the result
7. the journal of its run

A stream, the object store and a journal do one thing at a time. Durations of trials follow a log-normal distribution around the given mean.
The simulation contains no failures, no other load on the machines, and no limits of model providers.

`

// start returns the section about the first minute of a run.
func start() string {
	var b strings.Builder
	b.WriteString("## The first minute\n\nEach worker fetches the files of a run once. Its slots are empty until then:\n\n")
	table(&b, []string{"files of the suite", "40 workers", "1,000 workers", "1,000 workers, replicas 3"})
	for _, megabytes := range []int{1, 10, 100, 1000} {
		get := func(workers int, cost time.Duration) string { return short(time.Duration(workers*megabytes) * cost) }
		c := costs[getCost]
		table(&b, []string{fmt.Sprintf("%s MB", count(megabytes)), get(40, c.one), get(manyWorkers, c.one), get(manyWorkers, c.three)})
	}
	fmt.Fprintf(&b, "\nThat is the limit of the server's processor: %.0f MB per second. A network of 10 Gbit/s allows about 1,100.\n\n",
		1/costs[getCost].one.Seconds())
	return b.String()
}

// advice returns the recommendations, with numbers from the utilization law.
func advice() string {
	shortest := func(d design) time.Duration {
		b := d.bounds()
		rate := math.Min(math.Min(b[ordersResource], b[resultsResource]), b[objectsResource])
		return time.Duration(float64(d.workers*d.slots) / rate * 1e9)
	}
	all := design{workers: manyWorkers, slots: slotsEach, runs: manyRuns, length: time.Second, signed: true}
	replicated := all
	replicated.replicas = 3
	one := all
	one.runs = 1
	b := all.bounds()
	r := replicated.bounds()
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	p("## Remedies\n")
	p("| bottleneck | from | remedy |")
	p("|---|---|---|")
	p("| slots | always, in a busy fleet | more workers, or more `--slots` if agents mostly wait for models |")
	p("| depth of the runs | more than %d workers with %d slots per run | several runs at once. Divide the suite "+
		"by tags or models: ten runs of a tenth use ten times as many workers |",
		depth/slotsEach, slotsEach)
	p("| orders stream | %s trials per second, %s with 3 replicas. %s slots reach that with trials of %s, with 3 "+
		"replicas of %s | a team (`?team=`) per group of runs. Each team has its own streams, and servers of a "+
		"cluster share them. Short trials need no fleet: one machine does %s mock trials per second |",
		number(b[ordersResource]), number(r[ordersResource]), count(manyWorkers*slotsEach), short(shortest(all)),
		short(shortest(replicated)), number(1/costs[journalCost].one.Seconds()))
	p("| results stream | %s trials per second, %s with 3 replicas | the same. Workers put several results into a "+
		"message, so the orders stream is always the earlier bottleneck |",
		number(b[resultsResource]), number(r[resultsResource]))
	p("| object store | %.0f MB per second in and out, %.0f with 3 replicas | smaller results: fewer graders that "+
		"keep workspaces, shorter outputs of programs. A separate team for suites with large fixtures |",
		1/(one.cost(putCost)+one.cost(getCost)).Seconds(),
		1/(replicated.cost(putCost)+replicated.cost(getCost)).Seconds())
	p("| owner's processor, journal | %s trials per second of a run on %d cores. The journal alone allows %s | "+
		"several runs, on several machines. `--fsync never` does not help, because the disk is not the bottleneck |",
		number(one.bounds()[ownerResource]), ownerCores, number(one.bounds()[journalResource]))
	p("| cards of workers | %s workers use %.0f %% of the core of their bucket with one run, and %.0f %% with %d "+
		"runs. The limit is then %s workers | a team per group of workers |",
		count(manyWorkers), 100*one.cards(), 100*all.cards(), manyRuns, number(manyWorkers/all.cards()))
	p("")
	return s.String()
}

// constants returns the table of the simulation's inputs.
func constants() string {
	var b strings.Builder
	b.WriteString("## Inputs\n\nThe costs were measured on two cores of a virtual machine with a local disk. " +
		"Servers are separate processes, and the processor time\nof the leader of a stream counts. A faster machine " +
		"moves all limits. `cmd/fleetsim/costs.go` contains the numbers.\n\n")
	table(&b, []string{"cost", "1 server", "3 replicas", "per", "source"})
	for _, c := range costs {
		three := "the same"
		if c.three > 0 {
			three = c.three.String()
		}
		table(&b, []string{c.name, c.one.String(), three, c.per, c.source})
	}
	fmt.Fprintf(&b, "\nAn order has %d bytes, a result %s, a card %d. A worker sends a sign of life for an order "+
		"every %v, and renews its card every %v.\n",
		orderBytes, count(resultBytes), cardBytes, lost/3, beat)
	return b.String()
}

// number formats a number with two digits, and with commas if it is large.
func number(x float64) string {
	if x = round(x, 2); x >= 1000 {
		return count(int(x))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// reality returns the section that compares the simulation with real fleets.
func reality() string {
	var b strings.Builder
	b.WriteString("\n## Comparison with real fleets\n\nThese fleets ran on the machine of the table above, with " +
		"server, owner and workers together on its two cores:\n\n")
	table(&b, []string{"fleet", "number", "simulated", "measured", "source"})
	for _, c := range checks {
		unit, simulated := "trials per second", number(simulate(c.design, 1).rate)
		if c.processor {
			x := c.design.demands()
			unit, simulated = "server's processor per trial", number(float64(x.publishOrder+x.pullOrder+x.publishResult+x.takeResult)/1000)+" µs"
			table(&b, []string{c.what, unit, simulated, number(c.measured) + " µs", c.source})
			continue
		}
		table(&b, []string{c.what, unit, simulated, number(c.measured), c.source})
	}
	b.WriteString("\nTests compare these numbers within a factor of two, because the tests share their machine. " +
		"They compare the simulation with the bounds\nof the utilization law within 5 %. The simulation does not " +
		"model that real workers send several results in a message.\n")
	return b.String()
}

// count formats a number with commas.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// round rounds to the given number of digits.
func round(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Ceil(math.Log10(math.Abs(x)))-float64(digits))
	return math.Round(x/unit) * unit
}

// short formats a duration with two digits.
func short(d time.Duration) string {
	s := d.Seconds()
	text := func(x float64, unit string) string { return strconv.FormatFloat(round(x, 2), 'g', 3, 64) + " " + unit }
	switch {
	case s < 1:
		return text(s*1000, "ms")
	case s < 60:
		return text(s, "s")
	case s < 7200:
		return text(s/60, "min")
	case s < 48*3600:
		return text(s/3600, "h")
	}
	return text(s/86400, "days")
}
