package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/eval/text"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/seal"
	"waza/runner/fleet/worker"
)

// maxSlots limits the trials that a worker does at once.
const maxSlots = 1024

// WorkerCommand returns waza worker.
func WorkerCommand(p Program) *cli.Command {
	return &cli.Command{
		Name: "worker", Category: help.Daemon,
		Usage: "execute trials of runs on other machines",
		Description: `A worker executes trials of runs that were started with --fleet, and sends the
results back. It uses the agents, programs and keys of this machine; they never leave it.
It executes all orders that it receives; with --trust, only orders signed with a key that
you list. docs/fleet.md starts with two workers on one machine.

After Ctrl-C or SIGTERM, the worker takes no more trials and waits for running ones. A
second signal gives them to other workers; a third one exits at once.

Examples:
  waza worker --fleet embedded                         beside a waza run --fleet embedded
  waza worker --fleet nats://nats.example:4222 --slots 8
  waza worker --fleet 'tls://nats.example:4222?team=search&creds=search.creds' --labels gpu
  waza worker --fleet nats://nats.example:4222 --trust owners.keys

Exit codes: 0 when it was drained; 2 for wrong usage, 3 when it cannot reach the fleet, 130
when it gave its trials back.`,
		Flags: []cli.Flag{
			AddressFlag("work for"),
			&cli.IntFlag{Name: "slots", Usage: "execute `N` trials at once", DefaultText: "one per processor"},
			&cli.StringFlag{
				Name: "labels",
				Usage: "offer `LABELS`, separated by commas, which runs can require. System and architecture, such as " +
					"linux and amd64, are always included",
				DefaultText: "none",
			},
			&cli.StringFlag{
				Name:        "trust",
				Usage:       "execute only orders signed with one of `KEYS`, separated by commas: public keys, or files with one key per line",
				DefaultText: "all orders",
			},
			&cli.StringFlag{Name: "name", Usage: "name the worker `NAME` instead of its host", DefaultText: "the host's name"},
			&cli.StringFlag{
				Name:        "metrics",
				Usage:       "serve metrics for Prometheus at `ADDR`/metrics, and the state of the connection at /healthz",
				DefaultText: "none",
			},
			flags.JSON("print events as JSON, one per line"),
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the events of the connection and each trial to stderr"},
		},
		Action: flags.AtMost(0, p.work),
	}
}

// AddressFlag returns the flag --fleet. verb is the effect on the fleet, such as "show".
func AddressFlag(verb string) cli.Flag {
	return &cli.StringFlag{
		Name: "fleet", EnvVars: []string{"WAZA_FLEET"},
		Usage:       verb + " the fleet at `ADDRESS`, such as nats://host:4222?team=search, or embedded",
		DefaultText: "$WAZA_FLEET",
	}
}

// addressOf parses --fleet.
func addressOf(c *cli.Context) (engine.Address, error) {
	given := c.String("fleet")
	if given == "" {
		return engine.Address{}, exit.Usagef("waza "+c.Command.Name+" --fleet embedded", "--fleet or WAZA_FLEET is required")
	}
	a, err := engine.Parse(given)
	if err != nil {
		return a, exit.Usagef("see docs/fleet.md for addresses", "--fleet: %v", err)
	}
	return a, nil
}

// started is the first output of waza worker --json.
type started struct {
	Worker string       `json:"worker"`
	Fleet  string       `json:"fleet"`
	Team   string       `json:"team"`
	Slots  int          `json:"slots"`
	Trusts []string     `json:"trusts,omitempty"`
	Offer  *offer.Offer `json:"offer"`
}

// ended is its last output.
type ended struct {
	Worker string `json:"worker"`
	Trials int64  `json:"trials"`
	// Again counts those that another worker had started.
	Again int64 `json:"again,omitempty"`
}

func (p Program) work(c *cli.Context) error {
	address, err := addressOf(c)
	if err != nil {
		return err
	}
	slots := runtime.NumCPU()
	if c.IsSet("slots") {
		if slots = c.Int("slots"); slots < 1 || slots > maxSlots {
			return exit.Usagef("omit --slots for one per processor", "--slots must be between 1 and %d, got %d", maxSlots, slots)
		}
	}
	var labels []string
	if given := c.String("labels"); given != "" {
		labels = strings.Split(given, ",")
		if err := offer.CheckLabels(labels); err != nil {
			return exit.Usagef("--labels gpu,fast", "--labels: %v", err)
		}
	}
	log := p.logger(c)
	signals, stop := interrupt.Contexts(c.Context, 2, together)
	defer stop()
	first, second := signals[0], signals[1]
	conn, err := p.connect(first, address, engine.Options{Name: "waza worker", Log: log, Retry: true})
	if err != nil {
		if first.Err() != nil {
			return exit.With(exit.Interrupted)
		}
		return err
	}
	defer conn.Close()
	o, err := p.options(conn, workerID(c.String("name")), slots, p.offer(labels), log)
	if err != nil {
		return err
	}
	if spec := c.String("trust"); spec != "" {
		if o.Trust, err = seal.ReadTrust(spec); err != nil {
			return exit.Usagef("waza fleet key FILE makes a key", "--trust: %v", err)
		}
	}
	if c.IsSet("metrics") {
		registry := newRegistry()
		o.Metrics = worker.NewMetrics(registry)
		end, err := serveMetrics(c.String("metrics"), registry, conn.Connected, p.Stderr)
		if err != nil {
			return err
		}
		defer end()
	}
	if err := p.announce(c, address, &o); err != nil {
		return err
	}
	w := worker.New(o)
	release := context.AfterFunc(first, func() {
		if n := w.Status().Busy; n > 0 {
			fmt.Fprintf(p.Stderr, "waza: taking no more trials; waiting for %s (Ctrl-C gives them to other workers)\n",
				text.Count(n, "trial", "trials"))
		}
		w.Drain()
	})
	defer release()
	if err := w.Run(second); err != nil && second.Err() == nil {
		return err
	}
	if err := p.summarize(c, o.ID, w.Status()); err != nil {
		return err
	}
	if second.Err() != nil {
		return exit.With(exit.Interrupted)
	}
	return nil
}

func workerID(name string) string {
	id := worker.NewID()
	if name == "" {
		return id
	}
	return fleet.CleanToken(name, 40) + id[strings.LastIndexByte(id, '-'):]
}

func (p Program) announce(c *cli.Context, address engine.Address, o *worker.Options) error {
	s := started{Worker: o.ID, Fleet: address.String(), Team: address.Team, Slots: o.Slots, Offer: o.Offer}
	if o.Trust != nil {
		s.Trusts = o.Trust.Keys()
	}
	if c.Bool("json") {
		return p.Stdout.Line(s)
	}
	_, err := fmt.Fprintf(p.Stdout, "Worker %s does %s at once for %s, team %s\nIt offers %s\n", s.Worker,
		text.Count(s.Slots, "trial", "trials"), s.Fleet, s.Team, o.Offer.Line())
	if err == nil && o.Trust == nil && !address.Embedded {
		fmt.Fprintln(p.Stderr, "waza: this worker does all orders for its team; --trust KEYS limits it to signed orders")
	}
	return err
}

func (p Program) summarize(c *cli.Context, id string, s worker.Status) error {
	if c.Bool("json") {
		return p.Stdout.Line(ended{id, s.Done, s.Again})
	}
	line := "Did " + text.Count(int(s.Done), "trial", "trials")
	if s.Again > 0 {
		line += fmt.Sprintf(", %d of them repeated because another worker was lost", s.Again)
	}
	_, err := fmt.Fprintln(p.Stdout, line)
	return err
}

// logger returns a logger to stderr: warnings, and everything with --verbose.
func (p Program) logger(c *cli.Context) *slog.Logger {
	level := slog.LevelWarn
	if c.Bool("verbose") {
		level = slog.LevelDebug
	}
	return p.Logger(level, c.Bool("json"))
}

// connect connects to a fleet. It sets the state directory of the options.
func (p Program) connect(ctx context.Context, a engine.Address, o engine.Options) (*engine.Conn, error) {
	var err error
	if o.State, err = p.StateDir(); err != nil {
		return nil, err
	}
	return engine.Connect(ctx, a, o)
}

// together is the time within which signals count as one, because a terminal and a supervisor can
// both send one.
const together = 20 * time.Millisecond
