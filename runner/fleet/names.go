// Package fleet lets workers on other machines execute the trials of a run, over NATS JetStream.
// Make a [Fleet] with [New] and pass it to the runner. It publishes an order for each trial, and
// returns the results to the run, which remains the only writer of its record. Workers are in
// package worker.
//
//	owner                        NATS JetStream                        worker
//	Do ──► order ──────────────► ORDERS (work queue) ─────────────────► trial.Do
//	       plan, files ────────► FILES (object store, by hash) ───────► order, workspace
//	       ◄───────────────────── notes: started, log lines ◄──────────── (not stored)
//	Do ◄── result, recorded ◄──── RESULTS (work queue) ◄─────────────── result
//	       ack                    STATE, WORKERS (key-value) ◄────────► cards of runs and workers
//
// An order stays in its stream until a worker has stored the result, and a result until its
// owner has recorded it. Therefore an order is executed again when its worker is lost, and a
// resumed run finds the results that arrived in the meantime. Each trial counts once, whatever
// process is killed.
package fleet

import "strings"

// Names are the names that a team uses in NATS. Teams share no name or subject, so that
// permissions can separate them.
type Names struct {
	// Team has 1 to 32 small letters, digits, dashes and underscores.
	Team string
	// Orders and Results are streams, State and Workers are key-value buckets, and Files is an
	// object bucket.
	Orders, Results, State, Workers, Files string
}

// NamesOf returns the names of a team.
func NamesOf(team string) Names {
	prefix := "WAZA_" + strings.ToUpper(team) + "_"
	return Names{
		Team: team, Orders: prefix + "ORDERS", Results: prefix + "RESULTS", State: prefix + "STATE",
		Workers: prefix + "WORKERS", Files: prefix + "FILES",
	}
}

func (n Names) subject(parts ...string) string {
	return "waza." + n.Team + "." + strings.Join(parts, ".")
}

// Order returns the subject of an order from its class, run and id.
func (n Names) Order(class, run, id string) string {
	return "waza." + n.Team + ".order." + class + "." + Token(run) + "." + id // in one piece: it is needed for each trial
}

// OrdersOf returns the subject of the orders of a class or of a run; "*" means all.
func (n Names) OrdersOf(class, run string) string {
	if run != "*" {
		run = Token(run)
	}
	return n.subject("order", class, run, "*")
}

// Result returns the subject of the results of a run.
func (n Names) Result(run string) string { return n.subject("result", Token(run)) }

// Note returns the subject of workers' notes about running trials of a run.
func (n Names) Note(run string) string { return n.subject("note", Token(run)) }

// Control returns the subject of requests of a run's owner to workers.
func (n Names) Control(run string) string { return n.subject("control", Token(run)) }

// Worker returns the subject of requests to a worker.
func (n Names) Worker(id string) string { return n.subject("worker", id) }

// RunKey returns the key of a run's card.
func RunKey(run string) string { return "run." + Token(run) }

// ClassKey returns the key of the card of a class of orders.
func ClassKey(class string) string { return "class." + class }

// WorkerKey returns the key of a worker's card.
func WorkerKey(id string) string { return "worker." + id }

// Token returns the id of a run as a token of a subject: without its dot.
func Token(run string) string { return strings.ReplaceAll(run, ".", "_") }

// maxToken is the maximum length, in bytes, of received texts that become part of names.
const maxToken = 128

// isToken reports whether a text can be part of a subject.
func isToken(name string) bool {
	return name != "" && len(name) <= maxToken && CleanToken(name, maxToken) == name
}

// CleanToken converts a name to a part of a subject: at most the given number of letters,
// digits, dashes and underscores.
func CleanToken(name string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name)
	return clean[:min(len(clean), most)]
}

func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
