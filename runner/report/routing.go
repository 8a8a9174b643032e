package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// Limits of the routing section.
const (
	mostConfusionColumns = 10
	mostMisroutes        = 50
	mostMisrouteReason   = 200 // columns
)

// routingDocument describes how well messages reached their clients. It returns nil if no task
// expects recipients.
func (r *Report) routingDocument() *document {
	if r.Summary == nil || r.Summary.Routing == nil {
		return nil
	}
	d, result := &document{}, r.Summary.Routing
	d.routingClients(result)
	d.routingCells(r.Summary.Groups)
	d.confusion(result)
	d.misroutes(result)
	return d
}

func (d *document) routingClients(r *record.RoutingResult) {
	right := "Routing, not measured: no trial was answered"
	if r.Accuracy != nil {
		right = fmt.Sprintf("Routing, over %s: accuracy %s", text.Count(r.Tasks, "task", "tasks"), figure.Percent(*r.Accuracy))
		if i := r.AccuracyInterval; i != nil {
			right += fmt.Sprintf(" (%s)", figure.PercentInterval(i.Low, i.High))
		}
	}
	for _, x := range []struct {
		n    int
		what string
	}{{r.Rerouted, "rerouted"}, {r.Errors, "in error"}, {r.Timeouts, "timed out"}} {
		if x.n > 0 {
			right += fmt.Sprintf(", %s %s", text.Count(x.n, "trial", "trials"), x.what)
		}
	}
	s := d.section(right)
	if len(r.Clients) == 0 {
		return
	}
	s.add(heads("Client", "Expected", "Took", "Right", "Precision", "Recall", "F1")...)
	s.spare = []int{3, 2, 1}
	for i := range r.Clients {
		s.add(clientRow(code(r.Clients[i].Client), &r.Clients[i].ClientMatches)...)
	}
	s.add(clientRow(plain("all"), &r.ClientMatches)...)
}

func clientRow(name item, m *record.ClientMatches) []item {
	return []item{
		name, plain(weight(m.TruePositives + m.FalseNegatives)), plain(weight(m.TruePositives + m.FalsePositives)),
		plain(weight(m.TruePositives)),
		plain(quotient(m.Precision)), plain(quotient(m.Recall)), plain(quotient(m.F1)),
	}
}

// weight formats a sum of shares, without decimals if it is whole.
func weight(x float64) string {
	if whole := math.Round(x); math.Abs(x-whole) < 1e-9 {
		return strconv.Itoa(int(whole))
	}
	return figure.Score(x)
}

// routingCells compares the cells of a matrix.
func (d *document) routingCells(groups []record.GroupResult) {
	s := d.section("")
	for _, g := range groups {
		if g.CellResult == nil || g.Routing == nil {
			continue
		}
		if len(s.rows) == 0 {
			s.add(heads("Cell", "Accuracy", "95 % interval", "Precision", "Recall", "F1")...)
		}
		s.add(code(g.Group), plain(share(g.Routing.Accuracy)), plain(shareInterval(g.Routing.AccuracyInterval)),
			plain(quotient(g.Routing.Precision)),
			plain(quotient(g.Routing.Recall)), plain(quotient(g.Routing.F1)))
	}
}

// confusion adds the table of expected recipients against clients that took the message, unless
// it is too wide.
func (d *document) confusion(r *record.RoutingResult) {
	var rows, columns []string
	cells := map[[2]string]float64{}
	for _, c := range r.Confusion {
		e, t := clientsText(c.Expected), clientsText(c.Took)
		rows, columns = append(rows, e), append(columns, t)
		cells[[2]string{e, t}] = c.Weight
	}
	// Sort several clients after one, and nobody last.
	order := func(a, b string) int {
		rank := func(s string) int {
			if s == nobody {
				return math.MaxInt
			}
			return strings.Count(s, " + ")
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	}
	slices.SortFunc(rows, order)
	slices.SortFunc(columns, order)
	rows, columns = slices.Compact(rows), slices.Compact(columns)
	switch {
	case len(columns) == 0:
		return
	case len(columns) > mostConfusionColumns || r.ConfusionDropped > 0:
		d.section("").line(plain("The confusion matrix is too large to show, see run.result"))
		return
	}
	s := d.section("")
	head := []item{{text: "Expected \\ took", colour: bold}}
	for _, c := range columns {
		head = append(head, item{text: c, colour: bold})
	}
	s.add(head...)
	for _, e := range rows {
		line := []item{code(e)}
		for _, t := range columns {
			it := plain("·")
			if w := cells[[2]string{e, t}]; w > 0 {
				it = item{text: weight(w), colour: red}
				if e == t {
					it.colour = green
				}
			}
			line = append(line, it)
		}
		s.add(line...)
	}
}

// nobody is the word for an empty list of clients.
const nobody = "nobody"

func clientsText(names []string) string {
	if len(names) == 0 {
		return nobody
	}
	return strings.Join(names, " + ")
}

// misroutes lists the trials whose message other clients took than expected.
func (d *document) misroutes(r *record.RoutingResult) {
	n := len(r.Misroutes) + r.MisroutesDropped
	if n == 0 {
		return
	}
	s := d.section(text.Count(n, "misroute", "misroutes"))
	for _, m := range r.Misroutes[:min(len(r.Misroutes), mostMisroutes)] {
		line := []item{
			code(m.TaskID), plain(fmt.Sprintf(", trial %d: expected ", m.TrialNum)), code(clientsText(m.Expected)),
			plain(", taken by "), code(clientsText(m.Took)),
		}
		if len(m.Rejected) > 0 {
			line = append(line, plain(", rejected by "), code(clientsText(m.Rejected)))
		}
		if m.Reason != "" {
			line = append(line, plain(": "), code(Clip(firstLine(m.Reason), mostMisrouteReason)))
		}
		s.line(line...)
	}
	if more := n - min(len(r.Misroutes), mostMisroutes); more > 0 {
		s.line(plain(fmt.Sprintf("and %d more", more)))
	}
}
