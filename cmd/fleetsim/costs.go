package main

import "time"

// cost is the cost of one operation and its source. It is a row of the table in docs/scale.md.
type cost struct {
	name  string
	value time.Duration
	// per is the unit of the cost.
	per string
	// source is the command that measures the cost. assumed describes an unmeasured one.
	source, assumed string
}

const (
	measureCommand = "go run ./cmd/fleetsim -measure 20000"
	journalCommand = "go test ./runner -run '^$' -bench Journalled -benchtime 3x -cpu 2"
	sealCommand    = "go test ./runner/fleet/seal -run '^$' -bench ."
	fleetCommand   = "go test ./cmd/fleetsim -run '^$' -bench Fleet -benchtime 1x"
	ownerCommand   = "time waza run --fleet ADDRESS, 20,000 mock trials"
)

// The costs of JetStream are the processor time of the server that leads the stream, because a
// stream does one thing at a time. All figures are for two cores of a virtual machine with a
// local disk, file store, NATS 2.15. Orders have 900 bytes, results 2 KB.
var (
	one = jetStream{
		publishOrder:  cost{"order: publish", 10 * time.Microsecond, "order", measureCommand, ""},
		pullOrder:     cost{"order: one pull request, delivery and acknowledgement", 26 * time.Microsecond, "order", measureCommand, ""},
		inProgress:    cost{"order: sign of life of its worker", 2 * time.Microsecond, "trial and 5 s", measureCommand, ""},
		publishResult: cost{"result: publish", 12 * time.Microsecond, "message", measureCommand, ""},
		takeResult:    cost{"result: delivery and acknowledgement", 12 * time.Microsecond, "message", measureCommand, ""},
		card: cost{
			"card of a worker: put, and delivery to one that watches", 60 * time.Microsecond, "worker and 4 s",
			measureCommand, "",
		},
		put: cost{"object: put", 2500 * time.Microsecond, "MB", measureCommand, ""},
		get: cost{"object: get", 2200 * time.Microsecond, "MB", measureCommand, ""},
	}
	three = jetStream{
		publishOrder:  cost{"order: publish", 23 * time.Microsecond, "order", measureCommand, ""},
		pullOrder:     cost{"order: one pull request, delivery and acknowledgement", 48 * time.Microsecond, "order", measureCommand, ""},
		inProgress:    cost{"order: sign of life of its worker", 2 * time.Microsecond, "trial and 5 s", measureCommand, ""},
		publishResult: cost{"result: publish", 30 * time.Microsecond, "message", measureCommand, ""},
		takeResult:    cost{"result: delivery and acknowledgement", 20 * time.Microsecond, "message", measureCommand, ""},
		card: cost{
			"card of a worker: put, and delivery to one that watches", 145 * time.Microsecond, "worker and 4 s",
			measureCommand, "",
		},
		put: cost{"object: put", 6600 * time.Microsecond, "MB", measureCommand, ""},
		get: cost{"object: get", 1800 * time.Microsecond, "MB", measureCommand, ""},
	}
	owner = ownerCosts{
		send:    cost{"owner: encode and publish an order", 20 * time.Microsecond, "trial", ownerCommand, ""},
		sign:    cost{"owner: sign an order", 25 * time.Microsecond, "trial", sealCommand, ""},
		receive: cost{"owner: receive and decode a result", 30 * time.Microsecond, "trial", ownerCommand, ""},
		journal: cost{
			"owner: record a trial (journal with group fsync, fold), one at a time", 22 * time.Microsecond, "trial",
			journalCommand, "",
		},
	}
	hop = cost{"network: one way between a server and an owner or worker", 250 * time.Microsecond, "message", "", "a data center"}
)

// jetStream contains the costs of a stream's leader.
type jetStream struct {
	publishOrder, pullOrder, inProgress, publishResult, takeResult, card, put, get cost
}

func (j jetStream) list() []cost {
	return []cost{j.publishOrder, j.pullOrder, j.inProgress, j.publishResult, j.takeResult, j.card, j.put, j.get}
}

// ownerCosts are the processor time of the process that owns a run.
type ownerCosts struct{ send, sign, receive, journal cost }

func (o ownerCosts) list() []cost { return []cost{o.send, o.sign, o.receive, o.journal} }

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
	// depth is the number of a run's trials that are in the fleet at the same time.
	depth = 1024
	// ownerCores is the number of cores that the owner of a run uses.
	ownerCores = 2
	// lost is the silence after which a worker counts as lost; it shows a sign of life three
	// times within that. beat is the interval between two cards of a worker.
	lost = 15 * time.Second
	beat = 4 * time.Second
)
