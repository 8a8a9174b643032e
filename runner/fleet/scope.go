package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"waza/eval/files"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/seal"
	"waza/runner/internal/bundle"
	"waza/runner/record"
	"waza/runner/trial"
)

// scope is what the parts of a run share: the connection, the place of the team, the names of what
// was sent, and the lifetime of their goroutines. Its fields do not change once the run is open.
type scope struct {
	spec     *trial.FleetRun
	conn     *engine.Conn
	address  engine.Address
	place    *Place
	store    bundle.Store
	signer   *seal.Signer // nil if orders are unsigned
	created  time.Time
	classes  []string // of the tasks, in their order
	plan     string   // names of objects
	files    string
	checkAge time.Duration
	log      *slog.Logger
	metrics  *Metrics

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func newScope(f *Fleet, a *trial.FleetRun, conn *engine.Conn, place *Place) (*scope, error) {
	s := &scope{
		spec: a, conn: conn, address: conn.Address(), place: place, store: bundle.InBucket(place.JS, place.Files), created: time.Now().UTC(),
		checkAge: f.checkAge(), log: f.o.Log, metrics: f.o.Metrics,
	}
	if s.address.Sign != "" {
		var err error
		if s.signer, err = seal.ReadSigner(s.address.Sign); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// send uploads the files and the plan of the run to the object store.
func (s *scope) send(ctx context.Context) error {
	packed, err := bundle.Pack(ctx, s.store, bundle.Contents{Orders: s.spec.Orders, Files: s.spec.Files, Without: []string{s.spec.State}})
	if err != nil {
		return err
	}
	_, _, sent := packed.Count()
	s.metrics.files(sent)
	s.files = packed.Hash()
	orders := make([]*record.Order, len(s.spec.Orders))
	for i, o := range s.spec.Orders {
		if orders[i], err = packed.Relocate(o); err != nil {
			return err
		}
		class, _ := classOf(o, s.address.Labels)
		s.classes = append(s.classes, class)
	}
	plan, err := planOf(orders)
	if err != nil {
		return err
	}
	b, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if len(b) > MaxPlan {
		return fmt.Errorf("the plan of the run must have at most %s, got %s; run fewer tasks at once",
			files.Size(MaxPlan), files.Size(int64(len(b))))
	}
	s.plan, err = bundle.Keep(ctx, s.store, b)
	return err
}

// makeClasses creates the classes of the run's orders.
func (s *scope) makeClasses(ctx context.Context) error {
	made := map[string]bool{}
	for i, class := range s.classes {
		if made[class] {
			continue
		}
		made[class] = true
		_, needs := classOf(s.spec.Orders[i], s.address.Labels)
		err := engine.Try(ctx, func(ctx context.Context) error {
			return s.place.MakeClass(ctx, class, needs, s.address.Lost, s.address.Replicas)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// control sends a request to the workers of the run.
func (s *scope) control(c Control) {
	b, err := json.Marshal(c)
	if err == nil {
		err = s.conn.NATS().Publish(s.place.Control(s.spec.RunID), b)
	}
	if err != nil {
		s.log.Debug("request to workers not sent", "run", s.spec.RunID, "error", err)
	}
}
