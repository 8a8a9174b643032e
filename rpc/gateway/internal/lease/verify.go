package lease

import "fmt"

// Verify returns an error if the records of the pool contradict each other, or a caller waits
// although a member has room for it. Tests call it between changes.
func (p *Pool[K, W, O, P]) Verify() error {
	occupied, waiting := 0, 0
	for id, m := range p.members {
		switch {
		case m.ID != id || m.left:
			return fmt.Errorf("member %s is not in the pool", id)
		case len(m.places) == 0 && p.rules.Absent(m.Offer):
			return fmt.Errorf("member %s is absent and has no places", id)
		}
		occupied += len(m.places)
	}
	for _, c := range p.classes {
		if err := p.verifyClass(c); err != nil {
			return fmt.Errorf("class %v: %w", c.key, err)
		}
		waiting += c.waiting
	}
	for _, parked := range p.parked {
		waiting += len(parked)
	}
	if occupied != p.occupied || waiting != p.waiting {
		return fmt.Errorf("%d places and %d waiters exist, but %d and %d are counted", occupied, waiting, p.occupied, p.waiting)
	}
	return nil
}

func (p *Pool[K, W, O, P]) verifyClass(c *class[K, W, O, P]) error {
	var counts [Able + 1]int
	for id, m := range p.members {
		counts[p.rules.Fit(c.want, m.Offer)]++
		if p.room(m) == 0 || !p.takes(c, m) {
			continue
		}
		if c.waiting > 0 {
			return fmt.Errorf("a caller waits although %s has room", id)
		}
		if _, listed := c.isFree[m]; !listed {
			return fmt.Errorf("%s has room, but is not listed", id)
		}
	}
	waiting := 0
	for i := range c.waiters {
		waiting += c.waiters[i].Len()
	}
	switch {
	case waiting != c.waiting:
		return fmt.Errorf("%d callers wait, but %d are counted", waiting, c.waiting)
	case counts != c.counts:
		return fmt.Errorf("members by fit are %v, but %v are counted", counts, c.counts)
	case c.isRefused() && waiting > 0:
		return fmt.Errorf("%d callers wait that all members refused", waiting)
	}
	return nil
}
