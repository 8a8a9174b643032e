package main

// queue is a heap of events by their times, with four children per node. A simulation spends
// most of its time here, and container/heap takes twice as long. The order of events with the
// same time depends only on the order of insertion.
type queue struct {
	events []event
}

func (q *queue) Len() int { return len(q.events) }

func (q *queue) push(e event) {
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if q.events[parent].at <= e.at {
			break
		}
		q.events[i] = q.events[parent]
		i = parent
	}
	q.events[i] = e
}

func (q *queue) pop() event {
	top := q.events[0]
	n := len(q.events) - 1
	e := q.events[n]
	q.events = q.events[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if q.events[c].at < q.events[least].at {
				least = c
			}
		}
		if q.events[least].at >= e.at {
			break
		}
		q.events[i] = q.events[least]
		i = least
	}
	q.events[i] = e
	return top
}

// fifo contains the runs of waiting orders, oldest first.
type fifo struct {
	runs []int32
	head int
}

func (f *fifo) push(run int32) { f.runs = append(f.runs, run) }

func (f *fifo) pop() (run int32, ok bool) {
	if f.head == len(f.runs) {
		return 0, false
	}
	run = f.runs[f.head]
	f.head++
	if f.head > 4096 && f.head*2 > len(f.runs) {
		f.runs = append(f.runs[:0], f.runs[f.head:]...)
		f.head = 0
	}
	return run, true
}
