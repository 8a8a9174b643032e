package report

// decisionText returns the answer to the question of the run; empty without one.
func (r *Report) decisionText() string {
	if r.Summary == nil || r.Summary.Decision == nil {
		return ""
	}
	return r.Summary.Decision.Text
}

func (p *runPrinter) decision() {
	if text := p.decisionText(); text != "" {
		p.printf("\n%s\n", p.paint(bold, Clean(text)))
	}
}

func (m *markdown) decision() {
	if text := m.decisionText(); text != "" {
		m.add("\n" + CodeBlock(Clean(text)) + "\n")
	}
}
