package worker

import (
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// hands are the goroutines that execute orders, about one for each slot. A free one takes the next
// order, because a new one would first have to grow its stack, which costs more than the rest of
// starting it.
type hands struct {
	work func(jetstream.Msg)
	next chan jetstream.Msg // without a buffer, so that only a free goroutine receives
	over chan struct{}      // closed by end
	all  sync.WaitGroup
}

// do executes an order without waiting for it. Its slot limits the number of goroutines.
func (h *hands) do(msg jetstream.Msg) {
	select {
	case h.next <- msg:
		return
	default:
	}
	h.all.Go(func() {
		for {
			h.work(msg)
			select {
			case msg = <-h.next:
			case <-h.over:
				return
			}
		}
	})
}

// end waits until all orders are executed. No call of do follows.
func (h *hands) end() {
	close(h.over)
	h.all.Wait()
}
