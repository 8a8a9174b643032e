package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

const statusWorkers = 64

var statusMeasure = measure{
	title: "Status during a run",
	rows: []row{
		{name: fmt.Sprintf("run.status p99 beside %d busy workers", statusWorkers), unit: "ms", target: target{most: 4}},
		{name: fmt.Sprintf("run.status p50 beside %d busy workers", statusWorkers), unit: "ms"},
	},
	how: fmt.Sprintf("A client runs the suite of the durable trial with %d workers, and asks for `run.status` again and again until "+
		"`eval.complete`. The notifications of the run arrive over the same pipe. The figures are the 99th and the 50th percentile of the "+
		"time from a request to its answer.", statusWorkers),
	floor: "The same percentiles for requests to a Go program that answers at once. As many of its threads as there are processors " +
		"calculate without end, and it sends as many notifications. So the system decides which thread has a processor.",
	run: status,
}

func status(ctx context.Context, b *bench) ([]figure, error) {
	suite, err := b.suite(mockSuite(someTasks, manyTrials, statusWorkers))
	if err != nil {
		return nil, err
	}
	return besideFloor(b.rounds(5, 1), func() ([]float64, error) {
		d, err := b.daemon(ctx)
		if err != nil {
			return nil, err
		}
		id, err := d.startRun(suite)
		if err != nil {
			return nil, err
		}
		return d.statusTimes(id)
	}, func() ([]float64, error) {
		d, err := b.start(ctx, nil, b.self, "floor-status")
		if err != nil {
			return nil, err
		}
		return d.statusTimes("")
	})
}

// statusTimes asks for the status of a run until its end, and closes the daemon. It returns the 99th
// and the 50th percentile of the time to an answer, in milliseconds.
func (d *daemon) statusTimes(runID string) ([]float64, error) {
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "s", "method": "run.status", "params": map[string]any{"runId": runID}})
	if err != nil {
		return nil, err
	}
	request = append(request, '\n')
	var list []time.Duration
	for over := false; !over; {
		start := time.Now()
		if _, err := d.in.Write(request); err != nil {
			return nil, err
		}
		for answered := false; !answered; {
			line, err := d.next()
			if err != nil {
				return nil, err
			}
			answered = bytes.HasPrefix(line, []byte(statusAnswer))
			over = over || bytes.Contains(line, []byte(`"eval.complete"`))
		}
		list = append(list, time.Since(start))
	}
	slices.Sort(list)
	_, err = d.close()
	return []float64{milliseconds(list[len(list)*99/100]), milliseconds(list[len(list)/2])}, err
}

const statusAnswer = `{"jsonrpc":"2.0","id":"s"`

// answerBesideWork answers each line of stdin while all processors are busy, sends the notifications
// of as many trials as the suite of the measure has, and then waits for the end of stdin. It is the
// floor of the measure of the status.
func answerBesideWork([]string) error {
	runtime.GOMAXPROCS(2*runtime.NumCPU() + 1) // so that the system decides which thread runs
	for range runtime.NumCPU() {
		go func() {
			for n := 1; n != 0; n++ {
			}
		}()
	}
	sent := make(chan error, 1)
	go func() {
		w := newFloorWriter()
		for trial := range someTasks * manyTrials {
			t := newFloorTrial(trial)
			w.start(t)
			w.complete(t)
			w.journal = w.journal[:0]
			if (trial+1)%statusWorkers != 0 && trial+1 != someTasks*manyTrials {
				continue
			}
			if _, err := os.Stdout.Write(w.stream); err != nil {
				sent <- err
				return
			}
			w.stream = w.stream[:0]
			time.Sleep(time.Millisecond)
		}
		_, err := fmt.Println(`{"jsonrpc":"2.0","method":"eval.complete"}`)
		sent <- err
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if _, err := fmt.Println(statusAnswer + `,"result":null}`); err != nil {
			return err
		}
	}
	return <-sent
}
