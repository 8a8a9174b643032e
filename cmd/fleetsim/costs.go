package main

import "time"

// The operations that costs lists.
const (
	publishOrderCost = iota
	pullOrderCost
	inProgressCost
	publishResultCost
	takeResultCost
	cardCost
	putCost
	getCost
	sendCost
	signCost
	receiveCost
	journalCost
	hopCost
	operations
)

// cost is a row of the table in docs/scale.md: the cost of one operation, and its source.
type cost struct {
	name string
	// one is the cost with one server; three, with 3 replicas, is 0 where that is the same.
	one, three time.Duration
	// per is the unit of the cost.
	per string
	// source is the command that measures the cost, or an assumption.
	source string
}

const (
	measureCommand = "`go test ./cmd/fleetsim -run '^$' -bench Costs -benchtime 20000x`"
	journalCommand = "`go test ./runner -run '^$' -bench Journalled -benchtime 3x -cpu 2`"
	sealCommand    = "`go test ./runner/fleet/seal -run '^$' -bench .`"
	fleetCommand   = "`go test ./cmd/fleetsim -run '^$' -bench Fleet -benchtime 1x`"
	ownerCommand   = "`time waza run --fleet ADDRESS, 20,000 mock trials`"
)

// us is the unit of the figures.
const us = time.Microsecond

// costs holds processor times: those of JetStream on the server that leads the stream, because a
// stream does one thing at a time, and those of the process that owns a run. All figures are for
// two cores of a virtual machine with a local disk, file store, NATS 2.15. Orders have 900 bytes,
// results 2 KB.
var costs = [operations]cost{
	publishOrderCost:  {"order: publish", 10 * us, 23 * us, "order", measureCommand},
	pullOrderCost:     {"order: one pull request, delivery and acknowledgement", 26 * us, 48 * us, "order", measureCommand},
	inProgressCost:    {"order: sign of life of its worker", 2 * us, 2 * us, "trial and 5 s", measureCommand},
	publishResultCost: {"result: publish", 12 * us, 30 * us, "message", measureCommand},
	takeResultCost:    {"result: delivery and acknowledgement", 12 * us, 20 * us, "message", measureCommand},
	cardCost:          {"card of a worker: put, and delivery to one that watches", 60 * us, 145 * us, "worker and 4 s", measureCommand},
	putCost:           {"object: put", 2500 * us, 6600 * us, "MB", measureCommand},
	getCost:           {"object: get", 2200 * us, 1800 * us, "MB", measureCommand},
	sendCost:          {"owner: encode and publish an order", 20 * us, 0, "trial", ownerCommand},
	signCost:          {"owner: sign an order", 25 * us, 0, "trial", sealCommand},
	receiveCost:       {"owner: receive and decode a result", 30 * us, 0, "trial", ownerCommand},
	journalCost:       {"owner: record a trial (journal with group fsync, fold), one at a time", 22 * us, 0, "trial", journalCommand},
	hopCost:           {"network: one way between a server and an owner or worker", 250 * us, 0, "message", "assumed: a data center"},
}

// cost returns the cost of an operation.
func (d design) cost(operation int) time.Duration {
	if c := costs[operation]; d.replicas <= 1 || c.three == 0 {
		return c.one
	}
	return costs[operation].three
}

// check compares the simulation with measurements of real fleets.
type check struct {
	what      string
	design    design
	measured  float64 // trials per second
	source    string
	processor bool // measured is the server's processor time per trial, in microseconds
}

var checks = []check{
	{
		"4 workers with 10 slots, trials of 50 ms",
		design{workers: 4, slots: 10, runs: 1, length: 50 * time.Millisecond, trials: 800, constant: true}, 780,
		fleetCommand, false,
	},
	{
		"4 workers with 25 slots, 40 trials at once, of 200 ms",
		design{workers: 4, slots: 25, runs: 1, length: 200 * time.Millisecond, depth: 40, trials: 600, constant: true},
		184, fleetCommand, false,
	},
	{"2 workers with 25 slots, mock trials of 0 s", design{workers: 2, slots: 25, runs: 1, trials: 20_000}, 53, ownerCommand, true},
}

const (
	// The sizes of messages, in bytes: an order with its seal, the result of a trial with a short
	// transcript, and the card of a worker.
	orderBytes  = 900
	resultBytes = 2048
	cardBytes   = 700
	// depth is the number of a run's trials that are in the fleet at the same time.
	depth = 1024
	// ownerCores is the number of cores that the owner of a run uses.
	ownerCores = 2
	// lost is the silence after which a worker counts as lost; it shows a sign of life three
	// times within that. beat is the interval between two cards of a worker.
	lost = 15 * time.Second
	beat = 4 * time.Second
)
