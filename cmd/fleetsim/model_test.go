package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No simulated fleet exceeds the bound of the utilization law. If one resource is far scarcer
// than the others, the fleet reaches the bound.
func TestSimulationKeepsTheUtilisationLaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		design  design
		limit   int
		atLeast float64 // share of the bound
	}{
		{"slots", design{workers: 4, slots: 25, runs: 1, length: 100 * time.Millisecond}, slotsResource, 0.97},
		{"slots of trials that differ", design{workers: 40, slots: 5, runs: 2, length: time.Second}, slotsResource, 0.95},
		{"depth", design{workers: 1000, slots: 25, runs: 1, length: time.Second}, depthResource, 0.97},
		{"depth of several runs", design{workers: 1000, slots: 25, runs: 3, length: time.Minute}, depthResource, 0.95},
		{"orders", design{workers: 1000, slots: 25, runs: 25, length: 50 * time.Millisecond, batch: 10}, ordersResource, 0.99},
		{
			"orders of a cluster",
			design{workers: 1000, slots: 25, runs: 25, length: 50 * time.Millisecond, replicas: 3, batch: 10},
			ordersResource, 0.99,
		},
		{"objects", design{workers: 1000, slots: 25, runs: 25, length: time.Second, objects: 1}, objectsResource, 0.99},
		{"owner", design{workers: 1000, slots: 25, runs: 1, signed: true}, ownerResource, 0.97},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.design.trials = max(10*min(c.design.population(), c.design.workers*c.design.slots), 20_000)
			c.design.constant = c.name != "slots of trials that differ"
			limit, bound := c.design.limit()
			require.Equal(t, resourceNames[c.limit], resourceNames[limit])
			o := simulate(c.design, 1)
			require.LessOrEqual(t, o.rate, bound*1.01)
			require.GreaterOrEqual(t, o.rate, bound*c.atLeast)
			for i, share := range o.busy {
				require.LessOrEqual(t, share, 1.0, resourceNames[i])
			}
			require.Greater(t, o.busy[limit], 0.8, "%v", o.busy)
		})
	}
}

// A single trial at a time takes the sum of its times at all stations.
func TestOneTrialAtATime(t *testing.T) {
	t.Parallel()
	d := design{
		workers: 1, slots: 1, runs: 1, trials: 100, length: 10 * time.Millisecond, depth: 1, constant: true,
		objects: 0.5, signed: true,
	}
	x := d.demands()
	each := x.send + x.publishOrder + x.pullOrder + int64(d.length) + x.objects + x.publishResult + x.takeResult +
		x.receive + 2*x.journal + 5*x.hop
	require.Equal(t, time.Duration(each*100), simulate(d, 1).took)
}

func TestSimulationRepeatsItself(t *testing.T) {
	t.Parallel()
	d := design{workers: 50, slots: 25, runs: 2, trials: 20_000, length: time.Second}
	require.Equal(t, simulate(d, 7), simulate(d, 7))
	require.NotEqual(t, simulate(d, 7), simulate(d, 8))
}

func TestQueueSorts(t *testing.T) {
	t.Parallel()
	var q queue
	want := []int64{}
	for i := range 1000 {
		at := int64(i * 7919 % 1009)
		q.push(event{at: at})
		want = append(want, at)
	}
	slices.Sort(want)
	for _, at := range want {
		require.Equal(t, at, q.pop().at)
	}
	require.Zero(t, q.Len())
	var f fifo
	for round := range 3 {
		for i := range 10_000 {
			f.push(int32(i))
		}
		for i := range 10_000 {
			run, ok := f.pop()
			require.True(t, ok)
			require.Equal(t, int32(i), run, fmt.Sprint(round))
		}
	}
	_, ok := f.pop()
	require.False(t, ok)
}

func BenchmarkSimulation(b *testing.B) {
	d := design{workers: 1000, slots: 25, runs: 25, trials: 1_000_000, length: 10 * time.Second}
	for b.Loop() {
		simulate(d, 1)
	}
}
