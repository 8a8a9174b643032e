package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Deadly is the number of lost workers after which the trial of an order ends in error.
const Deadly = 3

// A message that is delivered again has cost a worker, or was only lost on its way to one. The
// first time, it counts as a lost worker. From then on, each worker records that it starts the
// order, so that only workers count that started and did not finish it.

// Tries are the workers that have started an order after its first delivery failed.
type Tries struct {
	place *Place
	key   string
	list  []string
	// assumed is the number of workers that count as lost without a record.
	assumed int
}

// TriesOf returns the tries of the order of a message. For an order that is delivered for the
// first time, it returns no tries without asking the server.
func (p *Place) TriesOf(ctx context.Context, o *Order, msg jetstream.Msg) (*Tries, error) {
	t := &Tries{place: p}
	if t.assumed = AssumedLost(msg); t.assumed == 0 {
		return t, nil
	}
	t.key = "try." + Token(o.Run) + "." + o.ID
	e, err := p.State.Get(ctx, t.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value(), &t.list)
	}
	return t, err
}

// Lost returns the number of workers that were lost while they executed the order.
func (t *Tries) Lost() int { return t.assumed + len(t.list) }

// RecordStart records that a worker starts the order, unless this is the first delivery.
func (t *Tries) RecordStart(ctx context.Context, worker string) error {
	if t.assumed == 0 {
		return nil
	}
	return t.put(ctx, append(slices.Clone(t.list), worker))
}

// Undo removes the record that RecordStart made, because the worker is not lost.
func (t *Tries) Undo(ctx context.Context) error {
	if t.assumed == 0 {
		return nil
	}
	return t.put(ctx, t.list)
}

func (t *Tries) put(ctx context.Context, list []string) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = t.place.State.Put(ctx, t.key, b)
	return err
}

// AssumedLost returns the number of workers that count as lost with the order of a message, in
// addition to those that recorded its start.
func AssumedLost(msg jetstream.Msg) int {
	n, _ := strconv.Atoi(msg.Headers().Get(HeaderLost))
	n = max(0, min(n, Deadly))
	if meta, err := msg.Metadata(); err == nil && meta.NumDelivered > 1 {
		n++
	}
	return n
}

// Sweep removes messages of runs that are over from the streams, such as results that workers
// stored after their owner ended. Each run calls it once when it starts.
func (p *Place) Sweep(ctx context.Context) error {
	var errs []error
	for _, part := range []struct{ stream, filter string }{{p.Orders, p.subject("order", ">")}, {p.Results, p.subject("result", ">")}} {
		s, err := p.JS.Stream(ctx, part.stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(part.filter))
		if err != nil {
			return err
		}
		over := map[string]bool{} // by token of the run
		for subject := range info.State.Subjects {
			token := runIn(subject)
			is, known := over[token]
			if !known {
				is = p.isOver(ctx, token)
				over[token] = is
			}
			if is {
				errs = append(errs, s.Purge(ctx, jetstream.WithPurgeSubject(subject)))
			}
		}
	}
	return errors.Join(errs...)
}

// runIn returns the token of the run in the subject of an order or a result.
func runIn(subject string) string {
	switch parts := strings.Split(subject, "."); {
	case len(parts) == 6 && parts[2] == "order":
		return parts[4]
	case len(parts) == 4 && parts[2] == "result":
		return parts[3]
	}
	return ""
}

// isOver reports whether the run with a token is known to be over.
func (p *Place) isOver(ctx context.Context, token string) bool {
	e, err := p.State.Get(ctx, "run."+token)
	if err != nil {
		return false
	}
	var card RunCard
	return json.Unmarshal(e.Value(), &card) == nil && card.State == Over
}
