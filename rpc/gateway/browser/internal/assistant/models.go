package assistant

import "sync"

// models is the set of models that do not answer. It owns a mutex, which may be locked while
// Assistants.mu is held, and is safe for concurrent use.
type models struct {
	mu   sync.Mutex // guards the field below
	down map[string]bool
}

func (m *models) isDown(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down[name]
}

// set records whether a model answers. It returns false if that was known.
func (m *models) set(name string, down bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down[name] == down {
		return false
	}
	if delete(m.down, name); down {
		m.down[name] = true
	}
	return true
}

// isDown reports whether a model is known not to answer.
func (a *Assistants) isDown(model string) bool { return a.o.Model == nil || a.models.isDown(model) }

// setDown records whether a model answers, and limits the waiting time of its commands while it
// does not.
func (a *Assistants) setDown(model string, down bool) {
	if !a.models.set(model, down) {
		return
	}
	a.o.Log.Info("model", "model", model, "answers", !down)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, as := range a.roster.byID {
		if as.row.Model != model || a.closing {
			continue
		}
		for _, c := range as.waiting {
			if a.isDown(model) { // another command may have set it since
				c.expireLocked()
			} else {
				c.expiry.Stop()
			}
		}
	}
}
