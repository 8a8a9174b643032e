package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet/internal/limits"
	"waza/runner/pause"
	"waza/runner/record"
)

// Place gives access to a team's orders, results, cards and files. It is safe for concurrent
// use.
type Place struct {
	Names
	JS             jetstream.JetStream
	State, Workers jetstream.KeyValue
	Files          jetstream.ObjectStore
}

// Limits of a team's storage, in bytes. A full stream rejects messages, and publishers wait and
// retry. The server reserves this space, used or not.
const (
	maxOrders  = 512 << 20
	maxResults = 1 << 30
	maxFiles   = 4 << 30
	maxCards   = 16 << 20
)

// duplicates is how long a stream remembers the ids of messages. A publisher that gets no answer
// sends the message again.
const duplicates = 2 * time.Minute

// filesLife is how long files are kept after the last run that needed them.
const filesLife = 30 * 24 * time.Hour

// Find returns the place of a team. An owner must have made its streams before.
func Find(ctx context.Context, js jetstream.JetStream, names Names) (*Place, error) {
	p := &Place{Names: names, JS: js}
	var err error
	if p.State, err = js.KeyValue(ctx, names.State); err != nil {
		return nil, p.problem("bucket "+names.State, err)
	}
	if p.Workers, err = js.KeyValue(ctx, names.Workers); err != nil {
		return nil, p.problem("bucket "+names.Workers, err)
	}
	if p.Files, err = js.ObjectStore(ctx, names.Files); err != nil {
		return nil, p.problem("bucket "+names.Files, err)
	}
	return p, nil
}

// Make returns the place of a team, and creates its missing parts with the given number of
// replicas, 1 or more. It does not change existing streams, because an operator can have created
// them.
func Make(ctx context.Context, js jetstream.JetStream, names Names, replicas int) (*Place, error) {
	for _, s := range []jetstream.StreamConfig{
		{
			Name: names.Orders, Subjects: []string{names.subject("order", ">")}, Retention: jetstream.WorkQueuePolicy,
			MaxBytes: maxOrders, MaxAge: Lifetime, Description: "orders of waza runs for workers",
		},
		{
			Name: names.Results, Subjects: []string{names.subject("result", ">")}, Retention: jetstream.WorkQueuePolicy,
			MaxBytes: maxResults, MaxAge: Lifetime, Description: "results of waza workers for owners of runs",
		},
	} {
		s.Discard, s.Duplicates, s.Replicas, s.Storage = jetstream.DiscardNew, duplicates, replicas, jetstream.FileStorage
		if _, err := js.Stream(ctx, s.Name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // it exists, or the error occurs again when it is used
		}
		err := withLimit(&s.MaxBytes, func() (err error) { _, err = js.CreateStream(ctx, s); return err })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil, fmt.Errorf("stream %s: %w", s.Name, err)
		}
	}
	shared := limits.Bucket(names.Team, replicas)
	if _, err := js.KeyValue(ctx, shared.Bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
		if _, err := js.CreateKeyValue(ctx, shared); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return nil, fmt.Errorf("bucket %s: %w", shared.Bucket, err)
		}
	}
	for _, kv := range []jetstream.KeyValueConfig{
		{Bucket: names.State, TTL: Lifetime, Description: "runs and classes of orders"},
		{Bucket: names.Workers, TTL: CardLife, Description: "workers"},
	} {
		kv.MaxBytes, kv.Replicas = maxCards, replicas
		if _, err := js.KeyValue(ctx, kv.Bucket); !errors.Is(err, jetstream.ErrBucketNotFound) {
			continue
		}
		err := withLimit(&kv.MaxBytes, func() (err error) { _, err = js.CreateKeyValue(ctx, kv); return err })
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return nil, fmt.Errorf("bucket %s: %w", kv.Bucket, err)
		}
	}
	files := jetstream.ObjectStoreConfig{
		Bucket: names.Files, TTL: filesLife, MaxBytes: maxFiles, Replicas: replicas,
		Description: "files of suites, by their hashes",
	}
	if _, err := js.ObjectStore(ctx, files.Bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
		err := withLimit(&files.MaxBytes, func() (err error) { _, err = js.CreateObjectStore(ctx, files); return err })
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return nil, fmt.Errorf("bucket %s: %w", files.Bucket, err)
		}
	}
	// Servers of a cluster learn about parts that another process has just created a moment later.
	for end := time.Now().Add(settleTime); ; {
		p, err := Find(ctx, js, names)
		if !errors.Is(err, ErrNoPlace) || time.Now().After(end) || pause.About(ctx, settleTime/100) != nil {
			return p, err
		}
	}
}

// settleTime is how long Make waits for parts that exist already.
const settleTime = 5 * time.Second

// The error codes of a server and a cluster for a limit that exceeds the remaining space. The
// limits of the account apply then.
const (
	insufficient = 10047
	noPeers      = 10005
)

// withLimit creates something with its limit or, if the server has less space, without it.
func withLimit(limit *int64, create func() error) error {
	err := create()
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && (api.ErrorCode == insufficient || api.ErrorCode == noPeers) {
		*limit = -1
		return create()
	}
	return err
}

// problem describes an error of a part of a place.
func (p *Place) problem(part string, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("the NATS server has no JetStream; start it with -js, or enable it for the account: %w", err)
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return fmt.Errorf("%w of team %s (%s)", ErrNoPlace, p.Team, part)
	}
	return fmt.Errorf("%s: %w", part, err)
}

// ErrNoPlace means that no run of a team has used the fleet yet.
var ErrNoPlace = errors.New("there are no streams")

// consumerLife is how long a class of orders is kept after the last request of a worker.
const consumerLife = 24 * time.Hour

// metadataNeeds is the metadata key with the needs of a class in its consumer, for operators.
const metadataNeeds = "waza-needs"

// MakeClass creates the consumer of a class of orders, and publishes what they need. lost is how
// long a worker can be silent before its orders go to a different worker.
func (p *Place) MakeClass(ctx context.Context, class string, needs []record.Need, lost time.Duration, replicas int) error {
	// Runs share a class. A run can shorten the wait but not extend it: workers use the
	// shortest.
	if c, err := p.JS.Consumer(ctx, p.Orders, class); err == nil {
		lost = min(lost, c.CachedInfo().Config.AckWait)
	}
	card, err := json.Marshal(ClassCard{Class: class, Needs: needs, Lost: lost})
	if err != nil {
		return err
	}
	_, err = p.JS.CreateOrUpdateConsumer(ctx, p.Orders, jetstream.ConsumerConfig{
		Durable: class, Description: "orders of the class " + class, FilterSubject: p.OrdersOf(class, "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: lost, MaxDeliver: -1, MaxAckPending: maxPending, MaxWaiting: maxPulls,
		InactiveThreshold: consumerLife, Metadata: map[string]string{metadataNeeds: string(card)}, Replicas: replicas,
	})
	if err != nil {
		return fmt.Errorf("consumer %s of stream %s: %w", class, p.Orders, err)
	}
	if _, err := p.State.Put(ctx, ClassKey(class), card); err != nil {
		return fmt.Errorf("bucket %s: %w", p.Names.State, err)
	}
	return nil
}

const (
	// maxPending is the maximum number of unfinished orders of a class that workers have.
	maxPending = 100_000
	// maxPulls is the maximum number of workers' requests that wait for orders of a class.
	maxPulls = 16_384
)

// resultsWait is how long an owner can take to record results before it receives them again, the
// first time and later. The first wait is short, because results can be lost in a connection
// that broke. The later ones are long, because results wait to be recorded.
var resultsWait = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}

// makeResults creates the consumer of a run's results, replacing an existing one. Results that
// an earlier owner received but did not record are then sent at once.
func (p *Place) makeResults(ctx context.Context, run string, replicas int) (jetstream.Consumer, error) {
	name := Token(run)
	if err := p.JS.DeleteConsumer(ctx, p.Results, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("consumer %s of stream %s: %w", name, p.Results, err)
	}
	c, err := p.JS.CreateOrUpdateConsumer(ctx, p.Results, jetstream.ConsumerConfig{
		Durable: name, Description: "results of the run " + run, FilterSubject: p.Result(run),
		AckPolicy: jetstream.AckExplicitPolicy, BackOff: resultsWait, MaxDeliver: -1, MaxAckPending: maxPending,
		InactiveThreshold: Lifetime, Replicas: replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer %s of stream %s: %w", name, p.Results, err)
	}
	return c, nil
}

// held returns the ids of the orders of a run that the stream contains.
func (p *Place) held(ctx context.Context, run string) (map[string]bool, error) {
	s, err := p.JS.Stream(ctx, p.Orders)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(p.OrdersOf("*", run)))
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for subject := range info.State.Subjects {
		ids[lastToken(subject)] = true
	}
	return ids, nil
}

// forget removes everything that is stored for a run that is over, except its files.
func (p *Place) forget(ctx context.Context, run string) error {
	var errs []error
	if s, err := p.JS.Stream(ctx, p.Orders); err == nil {
		errs = append(errs, s.Purge(ctx, jetstream.WithPurgeSubject(p.OrdersOf("*", run))))
	} else {
		errs = append(errs, err)
	}
	if err := p.JS.DeleteConsumer(ctx, p.Results, Token(run)); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		errs = append(errs, err)
	}
	if s, err := p.JS.Stream(ctx, p.Results); err == nil {
		errs = append(errs, s.Purge(ctx, jetstream.WithPurgeSubject(p.Result(run))))
	} else {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// markOver changes the card of a run, if it has one, so that workers end its trials.
func (p *Place) markOver(ctx context.Context, run string) error {
	e, err := p.State.Get(ctx, RunKey(run))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var c RunCard
	if err := json.Unmarshal(e.Value(), &c); err != nil {
		return err
	}
	c.State, c.Seen = Over, time.Now().UTC()
	c.Waiting, c.Running = 0, 0
	b, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	_, err = p.State.Put(ctx, RunKey(run), b)
	return err
}

// Cards reads all cards of workers, or of runs and classes, whose keys have a prefix.
func Cards[T any](ctx context.Context, kv jetstream.KeyValue, prefix string) ([]T, error) {
	w, err := kv.Watch(ctx, prefix+"*", jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Stop() }()
	var list []T
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				return list, nil
			}
			var card T
			if err := json.Unmarshal(e.Value(), &card); err == nil {
				list = append(list, card)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
