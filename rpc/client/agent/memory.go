package agent

// memory keeps the latest answers in case the server asks for them again. The zero value is
// empty.
type memory struct {
	order   []string // ids, the oldest first
	answers map[string][]byte
	bytes   int
	unsent  []string // ids of answers that could not be sent for lack of a connection
}

// Limits of the memory.
const (
	maxRemembered      = 256
	maxRememberedBytes = 64 << 20
)

// keep adds an answer and removes the oldest ones beyond the limits.
func (m *memory) keep(id string, answer []byte, sent bool) {
	if m.answers == nil {
		m.answers = map[string][]byte{}
	}
	m.order, m.answers[id], m.bytes = append(m.order, id), answer, m.bytes+len(answer)
	if !sent {
		m.unsent = append(m.unsent, id)
	}
	for len(m.order) > maxRemembered || m.bytes > maxRememberedBytes && len(m.order) > 1 {
		oldest := m.order[0]
		m.order, m.bytes = m.order[1:], m.bytes-len(m.answers[oldest])
		delete(m.answers, oldest)
	}
}

// take returns the answer with an id; nil when it does not exist.
func (m *memory) take(id string) []byte { return m.answers[id] }

// takeUnsent returns each unsent answer once.
func (m *memory) takeUnsent() (answers [][]byte) {
	for _, id := range m.unsent {
		if answer := m.answers[id]; answer != nil {
			answers = append(answers, answer)
		}
	}
	m.unsent = nil
	return answers
}
