package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// design describes a fleet to simulate.
type design struct {
	workers, slots int
	runs           int // concurrent runs of owners, each in its own process
	trials         int // of all runs together
	length         time.Duration
	replicas       int
	// batch is the number of results in a message.
	batch int
	// objects is the size of the part of a trial in the object store, in MB.
	objects float64
	signed  bool
	// depth is the number of a run's trials that are in the fleet at the same time; 0 means the
	// real one.
	depth int
	// constant gives all trials the same length. Otherwise lengths are log-normal: one in eleven
	// takes more than 1.8 times the mean.
	constant bool
}

// The resources that can be the bottleneck of a fleet.
const (
	slotsResource = iota
	depthResource
	ordersResource
	resultsResource
	objectsResource
	cardsResource
	journalResource
	ownerResource
	resources
)

var resourceNames = [resources]string{
	"slots", "depth of the runs", "orders stream", "results stream", "object store", "cards of workers",
	"journal", "owner's processor",
}

// demands are the times, in nanoseconds, for which a trial occupies each sequential resource.
type demands struct {
	publishOrder, pullOrder, publishResult, takeResult, objects int64
	send, receive, journal                                      int64
	hop                                                         int64
}

func (d design) demands() demands {
	batch := int64(max(1, d.batch))
	x := demands{
		publishOrder: int64(d.cost(publishOrderCost)), pullOrder: int64(d.cost(pullOrderCost)),
		publishResult: int64(d.cost(publishResultCost)) / batch, takeResult: int64(d.cost(takeResultCost)) / batch,
		objects: int64(d.objects * float64(d.cost(putCost)+d.cost(getCost))),
		send:    int64(d.cost(sendCost)), receive: int64(d.cost(receiveCost)), journal: int64(d.cost(journalCost)),
		hop: int64(d.cost(hopCost)),
	}
	x.pullOrder += int64(float64(d.cost(inProgressCost)) * float64(d.length) / float64(lost/3))
	if d.signed {
		x.send += int64(d.cost(signCost))
	}
	return x
}

func (d design) population() int {
	n := d.depth
	if n == 0 {
		n = depth
	}
	return n * d.runs
}

// bounds returns the maximum trials per second for each resource, by the utilization law. A
// sequential resource with a demand of D seconds per trial allows at most 1/D. A resource that
// holds N trials for at least T seconds each allows at most N/T.
func (d design) bounds() (b [resources]float64) {
	x := d.demands()
	rate := func(n int, ns int64) float64 {
		if ns == 0 {
			return math.Inf(1)
		}
		return float64(n) * 1e9 / float64(ns)
	}
	slot := int64(d.length) + 2*x.hop + x.pullOrder
	b[slotsResource] = rate(d.workers*d.slots, slot)
	b[depthResource] = rate(d.population(),
		int64(d.length)+5*x.hop+x.publishOrder+x.pullOrder+x.publishResult+x.takeResult+x.objects+x.send+x.receive+2*x.journal)
	b[ordersResource] = rate(1, x.publishOrder+x.pullOrder)
	b[resultsResource] = rate(1, x.publishResult+x.takeResult)
	b[objectsResource] = rate(1, x.objects)
	b[journalResource] = rate(d.runs, x.journal)
	b[ownerResource] = rate(d.runs*ownerCores, x.send+x.receive+x.journal)
	b[cardsResource] = math.Inf(1)
	return b
}

// cards returns the share of time for which the bucket of cards is busy.
func (d design) cards() float64 {
	return float64(d.workers) / beat.Seconds() * d.cost(cardCost).Seconds() * float64(max(1, d.runs)+1) / 2
}

// limit returns the resource that allows the fewest trials per second, and that number.
func (d design) limit() (resource int, perSecond float64) {
	b := d.bounds()
	for i, x := range b {
		if x < b[resource] {
			resource = i
		}
	}
	return resource, b[resource]
}

// outcome is the result of a simulation.
type outcome struct {
	took time.Duration
	// rate is in trials per second, in the middle of the simulation without its start and end.
	rate float64
	// busy is the share of time for which each resource was used.
	busy [resources]float64
}

// station does one thing at a time on each of its cores, in the order of arrival.
type station struct {
	free []int64
	busy int64
}

func newStation(cores int) *station { return &station{free: make([]int64, cores)} }

// do returns the end of work that arrives now and takes some time.
func (s *station) do(now, takes int64) int64 {
	core := 0
	for i, f := range s.free {
		if f < s.free[core] {
			core = i
		}
	}
	s.free[core] = max(s.free[core], now) + takes
	s.busy += takes
	return s.free[core]
}

// The steps of a trial. Each is an event at the time of its arrival at a station, so that a
// station gets its work in the order of time.
const (
	coming   = iota // the order arrives at the server
	stored          // the server has the order
	asked           // a worker requests it
	ended           // the trial has ended, in its slot
	kept            // its files arrive at the object store
	sent            // the result arrives at the server
	received        // the result arrives at the owner
	decoded         // it arrives at the journal
	recorded        // the trial counts
)

type event struct {
	at   int64
	run  int32
	step int32
}

// simulation is a closed network: a run sends an order when it has recorded a trial.
type simulation struct {
	d       design
	x       demands
	rng     *rand.Rand
	events  queue
	waiting fifo // orders in the stream, by their runs
	slots   int  // free slots

	orders, results, objects *station
	owners, journals         []*station

	left, done, from, to int
	slotTime, inFlight   int64
	first, last          int64
	mu, sigma            float64
}

// simulate runs a design. The same seed gives the same outcome.
func simulate(d design, seed uint64) outcome {
	s := &simulation{
		d: d, x: d.demands(), rng: rand.New(rand.NewPCG(seed, 1)), slots: d.workers * d.slots, left: d.trials,
		orders: newStation(1), results: newStation(1), objects: newStation(1),
		from: d.trials / 4, to: d.trials - max(d.trials/4, min(d.population(), d.trials/4)),
	}
	s.sigma = 0.6
	s.mu = math.Log(float64(d.length)) - s.sigma*s.sigma/2
	for range d.runs {
		s.owners, s.journals = append(s.owners, newStation(ownerCores)), append(s.journals, newStation(1))
	}
	for i := range min(d.population(), d.trials) {
		s.send(0, int32(i%d.runs))
	}
	var now int64
	for s.events.Len() > 0 {
		e := s.events.pop()
		now = e.at
		s.step(e)
	}
	o := outcome{took: time.Duration(now), rate: float64(s.to-s.from) * 1e9 / float64(s.last-s.first)}
	share := func(busy int64, n int) float64 { return float64(busy) / float64(now) / float64(n) }
	o.busy[slotsResource] = share(s.slotTime, d.workers*d.slots)
	o.busy[depthResource] = share(s.inFlight, d.population())
	o.busy[ordersResource], o.busy[resultsResource], o.busy[objectsResource] = share(s.orders.busy, 1), share(s.results.busy,
		1), share(s.objects.busy, 1)
	for i := range d.runs {
		o.busy[ownerResource] += share(s.owners[i].busy, ownerCores) / float64(d.runs)
		o.busy[journalResource] += share(s.journals[i].busy, 1) / float64(d.runs)
	}
	o.busy[cardsResource] = d.cards()
	return o
}

// send sends the next order of a run, if it has one left.
func (s *simulation) send(now int64, run int32) {
	if s.left == 0 {
		return
	}
	s.left--
	s.inFlight -= now
	s.events.push(event{s.owners[run].do(now, s.x.send) + s.x.hop, run, coming})
}

func (s *simulation) step(e event) {
	switch e.step {
	case coming:
		s.events.push(event{s.orders.do(e.at, s.x.publishOrder), e.run, stored})
	case stored:
		if s.slots > 0 {
			s.slots--
			s.assign(e.at, e.run)
		} else {
			s.waiting.push(e.run)
		}
	case asked:
		s.events.push(event{s.orders.do(e.at, s.x.pullOrder) + s.x.hop + s.length(), e.run, ended})
	case ended:
		s.slotTime += e.at
		if run, ok := s.waiting.pop(); ok {
			s.assign(e.at, run)
		} else {
			s.slots++
		}
		next := int32(sent)
		if s.x.objects > 0 {
			next = kept
		}
		s.events.push(event{e.at + s.x.hop, e.run, next})
	case kept:
		s.events.push(event{s.objects.do(e.at, s.x.objects), e.run, sent})
	case sent:
		s.events.push(event{s.results.do(e.at, s.x.publishResult+s.x.takeResult) + s.x.hop, e.run, received})
	case received:
		s.events.push(event{s.owners[e.run].do(e.at, s.x.receive+s.x.journal), e.run, decoded})
	case decoded:
		s.events.push(event{s.journals[e.run].do(e.at, s.x.journal), e.run, recorded})
	case recorded:
		s.record(e.at)
		s.send(e.at, e.run)
	}
}

// assign gives a slot to an order, which its worker requests.
func (s *simulation) assign(now int64, run int32) {
	s.slotTime -= now
	s.events.push(event{now + s.x.hop, run, asked})
}

// length returns a random length of a trial.
func (s *simulation) length() int64 {
	if s.d.constant || s.d.length == 0 {
		return int64(s.d.length)
	}
	return int64(math.Exp(s.mu + s.sigma*s.rng.NormFloat64()))
}

func (s *simulation) record(at int64) {
	s.inFlight += at
	s.done++
	switch s.done {
	case s.from:
		s.first = at
	case s.to:
		s.last = at
	}
}
