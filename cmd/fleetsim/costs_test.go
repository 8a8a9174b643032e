package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/pause"
	"waza/runner/proc/proctest"
)

// Sizes of further measured messages, in bytes: a note that an order has started, and an object.
const (
	noteBytes   = 200
	objectBytes = 16 << 20
)

func TestMain(m *testing.M) {
	if text := os.Getenv(serverVariable); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkCosts measures the costs of NATS that costs.go contains, on one server and on a
// cluster of three, with about b.N operations of each kind.
func BenchmarkCosts(b *testing.B) {
	if testing.Short() {
		b.Skip("measures for a minute")
	}
	for _, servers := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			if b.N < 1000 {
				return // too few operations for the clock of processor times
			}
			ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
			defer cancel()
			of, err := startBench(ctx, b, servers)
			require.NoError(b, err)
			defer of.stop()
			n := b.N / 100 * 100 // the concurrent requests of pull divide it
			list, err := of.all(ctx, n)
			require.NoError(b, err)
			var table strings.Builder
			fmt.Fprintf(&table, "%d operations; microseconds per operation\n", n)
			fmt.Fprintf(&table, "%-36s %9s %9s %9s %9s\n", "", "servers", "leader", "client", "wall")
			for _, m := range list {
				fmt.Fprintf(&table, "%-36s %9.1f %9.1f %9.1f %9.1f\n", m.operation, m.Server, m.Leader, m.Client, m.Wall)
			}
			fmt.Print("\n", table.String()) // the log of a benchmark has at most ten lines
		})
	}
}

// measured is the cost of an operation, per operation.
type measured struct {
	operation string
	// Server is the processor time of all servers, Leader that of the busiest server, and Client
	// that of this process. Wall is the elapsed time. All are in microseconds.
	Server, Leader, Client, Wall float64
}

// serverVariable makes the program of these tests a NATS server. Its value contains the options.
const serverVariable = "WAZA_SIM_SERVER"

type serverOptions struct {
	Name, Dir, Routes string
	Port, Cluster     int
}

// serve runs the NATS server of a measurement until the end of its standard input.
func serve(text string) error {
	var o serverOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	options := &server.Options{
		ServerName: o.Name, Host: "127.0.0.1", Port: o.Port, JetStream: true, StoreDir: o.Dir, NoLog: true,
		NoSigs: true,
	}
	if o.Routes != "" {
		options.Cluster = server.ClusterOpts{Name: "sim", Host: "127.0.0.1", Port: o.Cluster}
		options.Routes = server.RoutesFromStr(o.Routes)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	signal.Ignore(os.Interrupt)
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// bench is a server, or a cluster of them, and a client.
type bench struct {
	processes []*exec.Cmd
	inputs    []io.Closer
	dir       string
	nc        *nats.Conn
	js        jetstream.JetStream
	replicas  int
}

// startBench starts the given number of servers, and connects.
func startBench(ctx context.Context, t testing.TB, servers int) (*bench, error) {
	dir, err := os.MkdirTemp("", "waza-sim-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, replicas: servers}
	var ports []int
	for range 2 * servers {
		ports = append(ports, proctest.FreePort(t))
	}
	var routes []string
	for i := range servers {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[servers+i]))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for i := range servers {
		o := serverOptions{Name: fmt.Sprintf("s%d", i), Dir: filepath.Join(dir, strconv.Itoa(i)), Port: ports[i], Cluster: ports[servers+i]}
		if servers > 1 {
			o.Routes = strings.Join(routes, ",")
		}
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), serverVariable+"="+string(text))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		b.processes, b.inputs = append(b.processes, cmd), append(b.inputs, in)
	}
	for b.nc == nil {
		if b.nc, err = nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", ports[0]), nats.MaxReconnects(-1)); err != nil {
			b.nc = nil
			if err := ctx.Err(); err != nil {
				b.stop()
				return nil, err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if b.js, err = jetstream.New(b.nc, jetstream.WithPublishAsyncMaxPending(1024)); err != nil {
		return nil, err
	}
	for { // until the cluster has a leader
		soon, cancel := context.WithTimeout(ctx, time.Second)
		_, err := b.js.CreateStream(soon, jetstream.StreamConfig{Name: "READY", Replicas: servers})
		cancel()
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			b.stop()
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (b *bench) stop() {
	if b.nc != nil {
		b.nc.Close()
	}
	for i, cmd := range b.processes {
		b.inputs[i].Close()
		_ = cmd.Wait()
	}
	os.RemoveAll(b.dir)
}

// cpu returns the processor time of a process in microseconds, or 0 on systems other than Linux.
func cpu(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) * 10_000 // ticks of 10 ms
}

func ownCPU() float64 { return cpu(os.Getpid()) }

// take measures do, which executes n operations.
func (b *bench) take(operation string, n int, do func() error) (measured, error) {
	runtime.GC()
	before := make([]float64, len(b.processes))
	for i, p := range b.processes {
		before[i] = cpu(p.Process.Pid)
	}
	own, started := ownCPU(), time.Now()
	if err := do(); err != nil {
		return measured{}, fmt.Errorf("%s: %w", operation, err)
	}
	m := measured{
		operation: operation, Wall: float64(time.Since(started).Nanoseconds()) / 1000 / float64(n),
		Client: (ownCPU() - own) / float64(n),
	}
	for i, p := range b.processes {
		used := (cpu(p.Process.Pid) - before[i]) / float64(n)
		m.Server += used
		m.Leader = max(m.Leader, used)
	}
	return m, nil
}

// publish publishes n messages, with at most 1,024 unanswered at a time.
func (b *bench) publish(subject string, n, size int) error {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte('a' + rand.IntN(26))
	}
	for i := range n {
		if _, err := b.js.PublishMsgAsync(&nats.Msg{
			Subject: fmt.Sprintf("%s.%d", subject, i), Data: body,
			Header: nats.Header{nats.MsgIdHdr: {fmt.Sprintf("%s/%d", subject, i)}},
		}); err != nil {
			return err
		}
	}
	<-b.js.PublishAsyncComplete()
	return nil
}

// pull takes n messages. Each request takes as many as a worker has free slots, with as many
// concurrent requests as there are workers.
func pull(c jetstream.Consumer, n, slots, workers int, progress bool) error {
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for range n / slots / workers {
				batch, err := c.Fetch(slots)
				if err != nil {
					errs <- err
					return
				}
				for msg := range batch.Messages() {
					if progress {
						_ = msg.InProgress()
					}
					if err := msg.Ack(); err != nil {
						errs <- err
						return
					}
				}
				if err := batch.Error(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// loopDesign configures loop.
type loopDesign struct {
	trials, atOnce, slots int
	length                time.Duration
}

// loop simulates trials of a given length: it publishes an order, pulls and acknowledges it,
// publishes a result, takes and acknowledges it.
func (b *bench) loop(ctx context.Context, orders, results jetstream.Consumer, d loopDesign) error {
	room, done := make(chan struct{}, d.atOnce), make(chan error, d.slots+2)
	ctx, cancel := context.WithCancel(ctx)
	var slots sync.WaitGroup
	defer slots.Wait()
	defer cancel()
	left := d.trials
	take, err := results.Consume(func(m jetstream.Msg) {
		_ = m.Ack()
		<-room
		if left--; left == 0 {
			done <- nil
		}
	})
	if err != nil {
		return err
	}
	defer take.Stop()
	body := make([]byte, resultBytes)
	for range d.slots {
		slots.Go(func() {
			for ctx.Err() == nil {
				batch, err := orders.Fetch(1, jetstream.FetchContext(ctx))
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					done <- err
					return
				}
				for msg := range batch.Messages() {
					_ = pause.For(ctx, d.length)
					if _, err := b.js.PublishAsync("r.loop", body); err != nil {
						done <- err
						return
					}
					_ = msg.Ack()
				}
			}
		})
	}
	slots.Go(func() {
		for i := range d.trials {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			if _, err := b.js.PublishAsync(fmt.Sprintf("o.loop.%d", i), body[:orderBytes]); err != nil {
				done <- err
				return
			}
		}
	})
	return <-done
}

// streams creates the streams of a fleet, and returns a consumer of each.
func (b *bench) streams(ctx context.Context) (orders, results jetstream.Consumer, err error) {
	for _, s := range []struct {
		name, subject string
		consumer      *jetstream.Consumer
	}{{"ORDERS", "o.>", &orders}, {"RESULTS", "r.>", &results}} {
		stream, err := b.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: s.name, Subjects: []string{s.subject}, Retention: jetstream.WorkQueuePolicy, Replicas: b.replicas,
			Duplicates: 2 * time.Minute, Discard: jetstream.DiscardNew,
		})
		if err != nil {
			return nil, nil, err
		}
		*s.consumer, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000, MaxDeliver: -1, AckWait: time.Minute,
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return orders, results, nil
}

// all measures each operation, n times.
func (b *bench) all(ctx context.Context, n int) (list []measured, err error) {
	ofOrders, ofResults, err := b.streams(ctx)
	cards, kerr := b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "CARDS", TTL: 15 * time.Second, Replicas: b.replicas})
	objects, oerr := b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "FILES", Replicas: b.replicas})
	for _, e := range []error{err, kerr, oerr} {
		if e != nil {
			return nil, e
		}
	}
	notes := 0
	_, err = b.nc.Subscribe("n.>", func(*nats.Msg) { notes++ })
	if err != nil {
		return nil, err
	}
	watcher, err := cards.WatchAll(ctx)
	if err != nil {
		return nil, err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for range watcher.Updates() {
		}
	})
	defer func() {
		_ = watcher.Stop()
		watching.Wait()
	}()
	blob := make([]byte, objectBytes)
	for i := range blob {
		blob[i] = byte(rand.Uint32())
	}
	const objectCount = 8
	for _, m := range []struct {
		what string
		n    int
		do   func() error
	}{
		{"", n / 5, func() error { return b.publish("o.warm", n/5, orderBytes) }},
		{"", n / 5, func() error { return pull(ofOrders, n/5, 1, 4, false) }},
		{"order: publish", n, func() error { return b.publish("o.a", n, orderBytes) }},
		{"order: pull one, ack", n, func() error { return pull(ofOrders, n, 1, 20, false) }},
		{"", n, func() error { return b.publish("o.b", n, orderBytes) }},
		{"order: pull 25, ack", n, func() error { return pull(ofOrders, n, 25, 4, false) }},
		{"", n, func() error { return b.publish("o.c", n, orderBytes) }},
		{"order: pull 25, in progress, ack", n, func() error { return pull(ofOrders, n, 25, 4, true) }},
		{"result: publish", n, func() error { return b.publish("r.a", n, resultBytes) }},
		{"result: deliver, ack", n, func() error {
			left, done := n, make(chan struct{})
			cc, err := ofResults.Consume(func(m jetstream.Msg) {
				_ = m.Ack()
				if left--; left == 0 {
					close(done)
				}
			})
			if err != nil {
				return err
			}
			defer cc.Stop()
			<-done
			return b.nc.Flush()
		}},
		{"order and result, 1,024 at once", n, func() error {
			return b.loop(ctx, ofOrders, ofResults, loopDesign{trials: n, atOnce: depth, slots: 50})
		}},
		{"note: publish, deliver", n, func() error {
			body := make([]byte, noteBytes)
			for i := range n {
				if err := b.nc.Publish("n.x", body); err != nil {
					return err
				}
				if i%1000 == 999 {
					if err := b.nc.Flush(); err != nil {
						return err
					}
				}
			}
			return b.nc.Flush()
		}},
		{"card: put, watch", n / 10, func() error {
			body := make([]byte, cardBytes)
			for i := range n / 10 {
				if _, err := cards.Put(ctx, fmt.Sprintf("worker.%d", i%1000), body); err != nil {
					return err
				}
			}
			return nil
		}},
		{"object: put, per MB", objectCount * objectBytes >> 20, func() error {
			for i := range objectCount {
				if _, err := objects.PutBytes(ctx, fmt.Sprint(i), blob); err != nil {
					return err
				}
			}
			return nil
		}},
		{"object: get, per MB", objectCount * objectBytes >> 20, func() error {
			for i := range objectCount {
				if _, err := objects.GetBytes(ctx, fmt.Sprint(i)); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		got, err := b.take(m.what, m.n, m.do)
		if err != nil {
			return nil, err
		}
		if m.what != "" {
			list = append(list, got)
		}
	}
	return list, nil
}
