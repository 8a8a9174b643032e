package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"waza/runner/fleet/offer"
	"waza/runner/internal/bundle"
	"waza/runner/record"
	"waza/runner/trial"
)

// Protocol is the version of the messages below. Workers and owners of different versions do not
// work together; their cards contain the version.
const Protocol = 1

// Limits of messages, in bytes. Larger ones travel through the object store.
const (
	// MaxInline is the size from which a result or a baseline is kept in the object store.
	MaxInline = 256 << 10
	// MaxResult is the maximum size of a trial's result, without its files.
	MaxResult = 256 << 20
	// MaxPlan is the maximum size of the plan of a run.
	MaxPlan = 512 << 20
)

// Headers of orders.
const (
	// HeaderLost is the number of workers assumed lost while they executed the order, before it
	// was published again.
	HeaderLost = "Waza-Lost"
)

// Order is the message that requests a trial from a worker. The plan of the run contains what
// its trials share. [Order.Encode] and [OrderDecoder] are the fast ways to and from its JSON.
type Order struct {
	Terms
	Request
}

// Request is what differs between the orders of a run.
type Request struct {
	ID string `json:"id"`
	// Task counts from 1, like in the run. Num, Hash, Params and Baseline are those of the
	// [record.Order].
	Task   int               `json:"task"`
	Num    int               `json:"num"`
	Hash   string            `json:"hash"`
	Params map[string]string `json:"params,omitempty"`
	// Baseline is the JSON of a [record.Baseline]. For a large baseline, Object is the name of
	// the object that contains it.
	Baseline json.RawMessage `json:"baseline,omitempty"`
	Object   string          `json:"object,omitempty"`
}

// Terms are the members that all orders of a run share. They are the first in its JSON.
type Terms struct {
	Protocol int    `json:"protocol"`
	Run      string `json:"run"`
	// Plan is the name of the object with the [Plan], and Files the name of the object with the
	// manifest of files.
	Plan  string `json:"plan"`
	Files string `json:"files"`
	// Owner is the public key with which the order is signed; empty if the owner does not sign.
	Owner string `json:"owner,omitempty"`
	// Expires is the time after which no worker starts the order.
	Expires time.Time `json:"expires"`
}

// Lifetime is how long orders and results are kept. A run that is resumed later executes its
// trials again.
const Lifetime = 7 * 24 * time.Hour

// OrderID returns the id of a trial's order in its run. It does not change when the run is
// resumed, unless the content of the trial changed.
func OrderID(o *record.Order) string {
	hash := o.Hash
	return strconv.Itoa(o.TaskNum) + "-" + strconv.Itoa(o.Num) + "-" + hash[:min(len(hash), 16)]
}

// Plan contains what the orders of a run share. It is an object with its hash as name.
type Plan struct {
	// Suite is the encoded suite. Orders are the orders of each task, without suite, run,
	// number, hash and baseline. Paths are portable, see package bundle.
	Suite  json.RawMessage   `json:"suite"`
	Orders []json.RawMessage `json:"orders"`
}

// Order returns the JSON of the order of a task, from 1, with its suite.
func (p *Plan) Order(task int) ([]byte, error) {
	if task < 1 || task > len(p.Orders) {
		return nil, fmt.Errorf("invalid task %d: the plan has %d tasks", task, len(p.Orders))
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(p.Orders[task-1], &parts); err != nil {
		return nil, fmt.Errorf("plan: task %d: %w", task, err)
	}
	parts["suite"] = p.Suite
	return json.Marshal(parts)
}

// Results is a message with the results of orders of one run. [EncodeResults] and [DecodeResults]
// are the fast ways to and from its JSON.
type Results struct {
	Worker string   `json:"worker"`
	List   []Result `json:"results"`
}

// Result is the result of an order.
type Result struct {
	ID string `json:"id"`
	// Trial is a [record.Trial]. For a large trial, Object is the name of the object that
	// contains it.
	Trial  json.RawMessage `json:"trial,omitempty"`
	Object string          `json:"object,omitempty"`
	// Notices are messages for the followers of the run, in order. The first of them can already
	// have arrived as notes.
	Notices []trial.Notice `json:"notices,omitempty"`
	// Files are the files that the trial left in its workspace; nil if it left none.
	Files *bundle.Parcel `json:"files,omitempty"`
	// Reason is the reason why there is no trial: the worker could not execute the order or, if
	// Refused is set, must not.
	Reason  string `json:"why,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	// Cancelled means that the worker ended the trial because the run was cancelled.
	Cancelled bool `json:"cancelled,omitempty"`
	// Halt is the reason why every further trial of the run would fail, too.
	Halt *Halt `json:"halt,omitempty"`
	// Lost is the number of workers lost before.
	Lost int `json:"lost,omitempty"`
}

// Halt is an encoded [executor.StopError].
type Halt struct {
	Message string `json:"message"`
	Orderly bool   `json:"orderly,omitempty"`
}

// MaxNotices is the maximum number of notices of one result.
const MaxNotices = 1000

// Notes is a message about the progress of orders of one run. It is not stored. If one is lost,
// its content only arrives later.
type Notes struct {
	Worker string `json:"worker"`
	List   []Note `json:"notes"`
}

// Note reports that an order has started or, if it has a notice, contains the notice.
type Note struct {
	ID string `json:"id"`
	// Lost is the number of workers lost before this one started the order.
	Lost int `json:"lost,omitempty"`
	// Index is the number of the notice in the result, from 0.
	Index  int           `json:"index,omitempty"`
	Notice *trial.Notice `json:"notice,omitempty"`
}

// Control is a request of the owner of a run to workers.
type Control struct {
	// Drop lists the orders whose trials are no longer needed.
	Drop []string `json:"drop,omitempty"`
}

// RunState is the state of a run for workers.
type RunState string

// The states of runs.
const (
	Running  RunState = "running"
	Stopping RunState = "stopping" // running trials can finish; no more start
	Over     RunState = "over"     // no trial is needed any more
)

// RunCard is the public state of a run in a team.
type RunCard struct {
	Protocol int `json:"protocol"`
	RunStanding
	// Key is the public key with which the owner signs.
	Key string `json:"key,omitempty"`
	// Duplicates is the number of results that arrived twice.
	Duplicates int `json:"duplicates,omitempty"`
}

// RunStanding is the part of a [RunCard] that people see.
type RunStanding struct {
	Run   string   `json:"run"`
	Suite string   `json:"suite"`
	State RunState `json:"state"`
	// Host and PID are those of the owner.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Trials is the number of trials of the run. Waiting orders were started by no worker yet,
	// Started ones (`begun` in JSON) are running, and Done ones have a recorded result.
	Trials  int `json:"trials"`
	Waiting int `json:"waiting"`
	Running int `json:"begun"`
	Done    int `json:"done"`
	// Again is the number of orders that were executed again because a worker was lost, and
	// Refused the number of orders that workers refused.
	Again   int       `json:"again,omitempty"`
	Refused int       `json:"refused,omitempty"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"`
}

// ClassCard describes what the orders of a class need.
type ClassCard struct {
	Class string        `json:"class"`
	Needs []record.Need `json:"needs,omitempty"`
	// Lost is the silence of a worker, in nanoseconds, after which its orders go to a different
	// worker.
	Lost time.Duration `json:"lost"`
}

// LeastLost is the minimum silence after which a worker is lost.
const LeastLost = time.Second

// DrainRequest is the request to a worker to take no more orders.
const DrainRequest = "drain"

// Check reports fields of an order that are invalid in themselves.
func (o *Order) Check() error {
	switch {
	case o.Protocol != Protocol:
		return fmt.Errorf("protocol version must be %d, got %d; run the same version of waza", Protocol, o.Protocol)
	case !isToken(Token(o.Run)) || !isToken(o.ID):
		return fmt.Errorf("invalid run %.80q or id %.80q", o.Run, o.ID)
	case o.Task < 1 || o.Num < 1:
		return fmt.Errorf("task and trial must be at least 1, got %d and %d", o.Task, o.Num)
	}
	return nil
}

// WorkerCard is the public state of a worker in a team. It is kept for [CardLife] and renewed
// before that.
type WorkerCard struct {
	Protocol int `json:"protocol"`
	WorkerStanding
	// Offer describes what the worker has.
	Offer *offer.Offer `json:"offer"`
	// Lacks lists, for each class of orders, what the worker lacks; it is empty for classes that
	// the worker can execute.
	Lacks map[string][]record.Need `json:"lacks"`
}

// WorkerStanding is the part of a [WorkerCard] that people see as it is.
type WorkerStanding struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Slots is the maximum number of concurrent trials of the worker, Busy the number of running
	// ones, and Done the number of finished ones.
	Slots    int   `json:"slots"`
	Busy     int   `json:"busy"`
	Done     int64 `json:"done"`
	Draining bool  `json:"draining,omitempty"`
	// Trusts are the keys whose orders it executes; absent if it executes all orders.
	Trusts []string  `json:"trusts,omitempty"`
	Seen   time.Time `json:"seen"`
}

// CardLife is how long the card of a worker is kept after its last sign of life. Beat is the
// interval at which it is renewed.
const (
	CardLife = 15 * time.Second
	Beat     = 4 * time.Second
)

// Does reports whether the worker executes orders of a class that are signed with a key, and the
// reason if not. A worker that has just started might not have seen the class yet.
func (c *WorkerCard) Does(class, key string) (why string, does bool) {
	lacks, known := c.Lacks[class]
	switch {
	case c.Protocol != Protocol:
		return fmt.Sprintf("it has protocol version %d, but this waza has %d", c.Protocol, Protocol), false
	case c.Draining:
		return "it is draining", false
	case !known:
		return "it has not checked yet what the trials need", false
	case len(lacks) > 0:
		return offer.Explain(lacks), false
	case c.Trusts != nil && key == "":
		return "it executes only signed orders (--trust)", false
	case c.Trusts != nil && !slices.Contains(c.Trusts, key):
		return "it does not trust the key " + key, false
	}
	return "", true
}
