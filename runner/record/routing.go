package record

import (
	"slices"
	"strings"

	"waza/eval"
)

// Routing describes how clients handled the messages of a trial, where clients receive prompts.
type Routing struct {
	// Expected are the names of the clients that the task expects to take the messages. It is
	// absent when the task states none, and empty when no client is expected.
	Expected []string `json:"expected,omitzero"`
	// Took are the names of the clients that took a message; empty when none did.
	Took []string `json:"took"`
	// Rejected are the names of clients that received a message and took none.
	Rejected []string `json:"rejected,omitempty"`
	// Reroutes is the number of times that other clients were asked after rejections.
	Reroutes int `json:"reroutes,omitempty"`
	// Reason explains why the last clients were chosen, or why no client took the message.
	Reason string `json:"reason,omitempty"`
}

// For returns the routing with the clients that task t expects, spelled like the clients' names.
// It returns nil for a nil routing.
func (r *Routing) For(t *eval.Task) *Routing {
	if r == nil {
		return nil
	}
	with := *r
	with.Expected = nil
	if t.Expected == nil || t.Expected.Recipients == nil {
		return &with
	}
	with.Expected = []string{}
	for _, name := range t.Expected.Recipients {
		for _, client := range slices.Concat(r.Took, r.Rejected) {
			if strings.EqualFold(client, name) {
				name = client
			}
		}
		if !slices.Contains(with.Expected, name) {
			with.Expected = append(with.Expected, name)
		}
	}
	slices.Sort(with.Expected)
	return &with
}

// Missed reports whether other clients than the expected ones took the messages. It is false for
// a routing without expectation.
func (r *Routing) Missed() bool { return r.Expected != nil && !slices.Equal(r.Expected, r.Took) }

// RoutingResult measures how well messages reached their clients, in the trials of tasks that
// state which clients take the message. Answered trials and timeouts count; errors do not. A
// timeout is wrong: its expected clients did not take the message. Each task weighs 1, shared by
// its counted trials. Undefined quotients are nil.
type RoutingResult struct {
	// Tasks is the number of tasks with counted trials. Trials is the number of these trials.
	Tasks  int `json:"tasks"`
	Trials int `json:"trials"`
	// Errors counts trials that do not count. Timeouts counts those of Trials that timed out.
	Errors   int `json:"errors"`
	Timeouts int `json:"timeouts"`
	// Rerouted is the number of counted trials that asked other clients after a rejection.
	Rerouted int `json:"rerouted"`
	// Accuracy is the mean over tasks of the share of messages that exactly the expected clients
	// took, with its 95 % interval, see [stats.MeanOver].
	Accuracy         *float64  `json:"accuracy"`
	AccuracyInterval *Interval `json:"accuracyInterval"`
	// ClientMatches and the quotients cover all clients.
	ClientMatches
	// Clients lists the clients that were expected or took a message, by name.
	Clients []ClientResult `json:"clients"`
	// Confusion counts answered messages by the expected clients and the clients that took them. Expected
	// clients are in order, and their entries by weight, heaviest first. ConfusionDropped counts
	// pairs beyond the first 500.
	Confusion        []ConfusionCell `json:"confusion,omitempty"`
	ConfusionDropped int             `json:"confusionDropped,omitempty"`
	// Misroutes lists the trials that other clients took, in the order of the suite.
	// MisroutesDropped counts those beyond the first 200.
	Misroutes        []Misroute `json:"misroutes,omitempty"`
	MisroutesDropped int        `json:"misroutesDropped,omitempty"`
}

// ClientMatches counts messages that clients took and were expected to take, in weights of
// tasks.
type ClientMatches struct {
	TruePositives  float64 `json:"truePositives"`
	FalsePositives float64 `json:"falsePositives"`
	FalseNegatives float64 `json:"falseNegatives"`
	// Precision is the share of taken messages that were expected. Recall is the share of
	// expected messages that were taken. F1 is their harmonic mean.
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
	F1        *float64 `json:"f1"`
}

// ClientResult measures how well messages reached one client.
type ClientResult struct {
	Client string `json:"client"`
	ClientMatches
}

// ConfusionCell counts the messages that were expected by some clients and taken by some
// clients. An empty list of clients means nobody.
type ConfusionCell struct {
	Expected []string `json:"expected"`
	Took     []string `json:"took"`
	Weight   float64  `json:"weight"`
	Trials   int      `json:"trials"`
}

// Misroute is a trial that other clients took than the expected ones.
type Misroute struct {
	TaskID   string   `json:"taskId"`
	TrialNum int      `json:"trialNum"`
	Expected []string `json:"expected"`
	Took     []string `json:"took"`
	// Rejected and Reason are those of the trial. The reason is cut to a few hundred bytes.
	Rejected []string `json:"rejected,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}
