// Package survey reports the state of a fleet: its workers, its waiting orders, and the runs
// they belong to. Call [Read], which changes nothing.
package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet"
	"waza/runner/fleet/offer"
	"waza/runner/record"
)

// most is the maximum length of each list of a survey, because others in the team write its
// data.
const most = 2000

// Viewer surveys the fleet of a process. It is safe for concurrent use.
type Viewer interface {
	// Survey returns the state of the fleet, or nil if the process has no fleet. The error is
	// the reason why the state is not available.
	Survey(ctx context.Context) (*Survey, error)
}

// Silent is the time since the last sign of life after which the owner of a run counts as
// silent, because it was killed or disconnected.
const Silent = 30 * time.Second

// Survey is the state of a fleet. Its lists are never nil.
type Survey struct {
	// Fleet is the address, without its password. The caller of [Read] sets it.
	Fleet string    `json:"fleet,omitempty"`
	Team  string    `json:"team"`
	Time  time.Time `json:"time"`
	// Used means that the team has streams. The fields below are empty otherwise.
	Used    bool  `json:"used"`
	Orders  Queue `json:"orders"`
	Results Queue `json:"results"`
	// Files is the size of stored files of suites and large results, in bytes.
	Files   uint64   `json:"filesBytes"`
	Classes []Class  `json:"classes"`
	Runs    []Run    `json:"runs"`
	Workers []Worker `json:"workers"`
	// Dropped is the number of classes, runs and workers that are missing above, because there
	// are more than 2,000 of a kind.
	Dropped int `json:"dropped,omitempty"`
}

// Queue is a stream of the team. It contains unfinished orders, or results that their owners
// have not recorded.
type Queue struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Limit is the maximum size in bytes; 0 means no limit.
	Limit int64 `json:"limitBytes,omitempty"`
}

// Class is a class of orders with the same needs.
type Class struct {
	Name  string        `json:"name"`
	Needs []record.Need `json:"needs,omitempty"`
	// Waiting is the number of orders without a worker, and Running the number of orders with one.
	Waiting uint64 `json:"waiting"`
	Running int    `json:"begun"`
	// Again is the number of started orders that had a lost worker before.
	Again int `json:"again,omitempty"`
	// Workers is the number of workers that can execute them, and Slots the number of concurrent
	// trials of these workers.
	Workers int `json:"workers"`
	Slots   int `json:"slots"`
}

// Run is a run whose trials the fleet executes.
type Run struct {
	fleet.RunStanding
	// Silent means that the owner has shown no sign of life for some time.
	Silent bool `json:"silent,omitempty"`
}

// Worker is a worker of the fleet.
type Worker struct {
	fleet.WorkerStanding
	// Offers describes what the worker has. Lacks contains, by class, the reason why it executes
	// none of its orders; it omits classes whose orders it executes.
	Offers string            `json:"offers"`
	Lacks  map[string]string `json:"lacks,omitempty"`
}

func workerOf(c *fleet.WorkerCard) Worker {
	w := Worker{WorkerStanding: c.WorkerStanding}
	if c.Offer != nil {
		w.Offers = c.Offer.Line()
	}
	for class, lacks := range c.Lacks {
		if len(lacks) > 0 {
			if w.Lacks == nil {
				w.Lacks = map[string]string{}
			}
			w.Lacks[class] = offer.Explain(lacks)
		}
	}
	return w
}

// Read returns the state of the fleet of a team. The survey of a team that has not used the
// fleet is empty. The error names the part that does not answer.
func Read(ctx context.Context, js jetstream.JetStream, team string) (*Survey, error) {
	s := &Survey{Team: team, Time: time.Now().UTC(), Classes: []Class{}, Runs: []Run{}, Workers: []Worker{}}
	place, err := fleet.Find(ctx, js, fleet.NamesOf(team))
	if errors.Is(err, fleet.ErrNoPlace) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.Used = true
	if err := s.queues(ctx, place); err != nil {
		return nil, err
	}
	if err := s.runs(ctx, place); err != nil {
		return nil, err
	}
	workers, err := s.workers(ctx, place)
	if err != nil {
		return nil, err
	}
	return s, s.classes(ctx, place, workers)
}

func (s *Survey) queues(ctx context.Context, p *fleet.Place) error {
	for _, q := range []struct {
		name string
		to   *Queue
	}{{p.Orders, &s.Orders}, {p.Results, &s.Results}} {
		stream, err := p.JS.Stream(ctx, q.name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", q.name, err)
		}
		info := stream.CachedInfo()
		*q.to = Queue{Messages: info.State.Msgs, Bytes: info.State.Bytes, Limit: max(0, info.Config.MaxBytes)}
	}
	status, err := p.Files.Status(ctx)
	if err != nil {
		return fmt.Errorf("object store %s: %w", p.Names.Files, err)
	}
	s.Files = status.Size()
	return nil
}

func (s *Survey) workers(ctx context.Context, p *fleet.Place) ([]fleet.WorkerCard, error) {
	cards, err := fleet.Cards[fleet.WorkerCard](ctx, p.Workers, fleet.WorkerKey(""))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", p.Names.Workers, err)
	}
	slices.SortFunc(cards, func(a, b fleet.WorkerCard) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range bounded(s, cards) {
		s.Workers = append(s.Workers, workerOf(&c))
	}
	return cards, nil
}

// rank sorts runs, running ones first.
var rank = map[fleet.RunState]int{fleet.Running: 0, fleet.Stopping: 1, fleet.Over: 2}

func (s *Survey) runs(ctx context.Context, p *fleet.Place) error {
	cards, err := fleet.Cards[fleet.RunCard](ctx, p.State, fleet.RunKey(""))
	if err != nil {
		return fmt.Errorf("bucket %s: %w", p.Names.State, err)
	}
	slices.SortFunc(cards, func(a, b fleet.RunCard) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), b.Created.Compare(a.Created), cmp.Compare(a.Run, b.Run))
	})
	for _, c := range bounded(s, cards) {
		s.Runs = append(s.Runs, Run{c.RunStanding, c.State != fleet.Over && s.Time.Sub(c.Seen) > Silent})
	}
	return nil
}

func (s *Survey) classes(ctx context.Context, p *fleet.Place, workers []fleet.WorkerCard) error {
	cards, err := fleet.Cards[fleet.ClassCard](ctx, p.State, fleet.ClassKey(""))
	if err != nil {
		return fmt.Errorf("bucket %s: %w", p.Names.State, err)
	}
	byName := map[string]*Class{}
	for _, c := range bounded(s, cards) {
		if offer.CheckNeeds(c.Needs) != nil {
			continue
		}
		byName[c.Class] = &Class{Name: c.Class, Needs: c.Needs}
	}
	stream, err := p.JS.Stream(ctx, p.Orders)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", p.Orders, err)
	}
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		class := byName[info.Name]
		if class == nil {
			continue // not a card of this kind
		}
		class.Waiting, class.Running, class.Again = info.NumPending, info.NumAckPending, info.NumRedelivered
		class.count(workers)
		s.Classes = append(s.Classes, *class)
	}
	if err := consumers.Err(); err != nil {
		return fmt.Errorf("consumers of stream %s: %w", p.Orders, err)
	}
	slices.SortFunc(s.Classes, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// count counts the workers that can execute the orders of the class.
func (c *Class) count(workers []fleet.WorkerCard) {
	for i := range workers {
		w := &workers[i]
		if lacks, known := w.Lacks[c.Name]; known && len(lacks) == 0 && !w.Draining && w.Protocol == fleet.Protocol {
			c.Workers++
			c.Slots += w.Slots
		}
	}
}

// bounded truncates a list, and counts the omitted entries.
func bounded[T any](s *Survey, list []T) []T {
	s.Dropped += max(0, len(list)-most)
	return list[:min(len(list), most)]
}
