package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet/engine"
	"waza/runner/fleet/offer"
	"waza/runner/record"
	"waza/runner/trial"
)

// Options configure a [Fleet]. Connect and Log are required.
type Options struct {
	// Connect connects to the fleet at an address, as an owner of runs.
	Connect func(ctx context.Context, address engine.Address) (*engine.Conn, error)
	Log     *slog.Logger
	// Check is how long a run waits for an order before it checks whether the server has lost
	// it; 0 means 10 s.
	Check time.Duration
	// Metrics can be nil.
	Metrics *Metrics
}

// Fleet lets workers execute the trials of this process's runs. It is safe for concurrent use.
type Fleet struct{ o Options }

func (f *Fleet) checkAge() time.Duration { return cmp.Or(f.o.Check, checkAge) }

// New returns a fleet. It connects when a run needs it.
func New(o Options) *Fleet { return &Fleet{o} }

var _ trial.FleetBackend = (*Fleet)(nil)

// openTime is the time limit for preparing a run, without sending its files.
const openTime = time.Minute

// Open implements [trial.FleetBackend]. It connects, sends the files and the plan of a run, and
// continues the work of an earlier owner.
func (f *Fleet) Open(ctx context.Context, a *trial.FleetRun) (_ trial.FleetTrials, err error) {
	conn, err := f.o.Connect(ctx, a.Address)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	soon, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	address := conn.Address()
	var place *Place
	err = engine.Try(soon, func(ctx context.Context) (err error) {
		place, err = Make(ctx, conn.JetStream(), NamesOf(address.Team), address.Replicas)
		if has, _ := conn.NATS().ConnectedServerJetStream(); errors.Is(err, nats.ErrNoResponders) && !has {
			err = (*Place)(nil).problem("", jetstream.ErrJetStreamNotEnabled)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", noAnswer(ctx, err))
	}
	if err := place.Sweep(soon); err != nil {
		f.o.Log.Debug("messages of earlier runs not removed; they expire", "error", err)
	}
	sc, err := newScope(f, a, conn, place)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if err := sc.send(ctx); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	r, err := newRun(sc)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if err := r.open(ctx); err != nil {
		r.end(false) // the run can be resumed
		return nil, fmt.Errorf("fleet: %w", noAnswer(ctx, err))
	}
	return r, nil
}

// Forget implements [trial.FleetBackend]. It marks the run as over for its workers, and removes its
// messages from the streams.
func (f *Fleet) Forget(ctx context.Context, address engine.Address, runID string) error {
	soon, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err := f.forget(soon, address, runID)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("what a killed process left of the run was not removed, and expires later: %w", err)
	}
	return nil
}

func (f *Fleet) forget(ctx context.Context, address engine.Address, runID string) error {
	conn, err := f.o.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = engine.Try(ctx, func(ctx context.Context) error {
		place, err := Find(ctx, conn.JetStream(), NamesOf(conn.Address().Team))
		if err != nil {
			return err
		}
		return errors.Join(place.markOver(ctx, runID), place.forget(ctx, runID))
	})
	if errors.Is(err, ErrNoPlace) {
		return nil
	}
	return err
}

// noAnswer explains an error that is caused by the time limit of Open.
func noAnswer(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("JetStream did not answer within %v", openTime)
	}
	return err
}

// planOf returns the plan of orders with portable paths.
func planOf(orders []*record.Order) (*Plan, error) {
	p := &Plan{}
	for i := range orders {
		o := *orders[i]
		if i == 0 {
			suite, err := json.Marshal(o.Suite)
			if err != nil {
				return nil, err
			}
			p.Suite = suite
		}
		o.Suite, o.RunID = nil, "" // so that the plans of two runs are equal
		b, err := json.Marshal(&o)
		if err != nil {
			return nil, err
		}
		p.Orders = append(p.Orders, b)
	}
	return p, nil
}

// classOf returns the class of a task's orders, and what they need.
func classOf(o *record.Order, labels []string) (class string, needs []record.Need) {
	needs = record.JoinNeeds(o.Needs, offer.Labels(labels))
	return offer.Class(needs), needs
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
