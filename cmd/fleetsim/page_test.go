package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const document = "../../docs/scale.md"

// few is the maximum number of trials of rows that each test simulates. Larger rows are compared
// with the bound of the scarcest resource, which they nearly reach.
const few = 100_000

// docs/scale.md agrees with the current simulation.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(document)
	require.NoError(t, err)
	list := sections()
	all := outcomes(list, few)
	want, have := strings.Split(page(list, all), "\n"), strings.Split(string(written), "\n")
	require.Len(t, have, len(want), "make scale writes the page")
	type place struct {
		section
		row
	}
	large := map[string]place{}
	for _, s := range list {
		for _, r := range s.rows {
			if r.design.trials > few {
				large["| "+strings.Join(r.cells, " | ")+" |"] = place{s, r}
			}
		}
	}
	compared := 0
	for i, line := range want {
		if line == have[i] {
			continue
		}
		cells := strings.Split(strings.Trim(have[i], "| "), " | ")
		require.GreaterOrEqual(t, len(cells), 3, "make scale writes the page; line %d", i+1)
		p, ok := large["| "+strings.Join(cells[:2], " | ")+" |"]
		require.True(t, ok, "make scale writes the page; line %d:\n%s\n%s", i+1, have[i], line)
		compared++
		limit, bound := p.design.limit()
		require.Contains(t, cells[len(cells)-1], resourceNames[limit], have[i])
		require.InEpsilon(t, bound, parse(t, cells[len(cells)-3]), 0.1, have[i])
	}
	require.Equal(t, len(large), compared, "each row of many trials was compared")
}

// Some of the large rows, simulated in full if the machine has no other work.
func TestManyTrials(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulates a million trials")
	}
	list := sections()
	r := list[1].rows[0]
	r.design.trials = 1_000_000
	o := simulate(r.design, 1)
	_, bound := r.design.limit()
	require.InEpsilon(t, bound, o.rate, 0.03)
	require.Greater(t, o.busy[ordersResource], 0.95)
}

// parse parses a number with commas.
func parse(t *testing.T, text string) (x float64) {
	t.Helper()
	for _, c := range strings.ReplaceAll(text, ",", "") {
		require.True(t, c >= '0' && c <= '9', text)
		x = 10*x + float64(c-'0')
	}
	return x
}

// The page names the bottleneck: the slots, unless a resource below is scarcer.
func TestPageNamesWhatIsShort(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, resource := range []int{
		slotsResource, depthResource, ordersResource, resultsResource, objectsResource, journalResource,
		cardsResource,
	} {
		require.Contains(t, string(written), resourceNames[resource])
	}
	for _, c := range costs {
		require.NotEmpty(t, c.source, "%s: a cost is measured or assumed", c.name)
		require.Positive(t, c.one)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 0.0417: "0.042", 3.14: "3.1", 99.7: "100", 416: "420", 27_400: "27,000", 1_250_000: "1,300,000",
	} {
		require.Equal(t, want, number(x))
	}
	for d, want := range map[time.Duration]string{
		50 * time.Millisecond: "50 ms", time.Second: "1 s", 59 * time.Second: "59 s", time.Minute: "1 min", 408 * time.Second: "6.8 min",
		2 * time.Hour: "2 h", 6*time.Hour + 48*time.Minute: "6.8 h", 72 * time.Hour: "3 days",
	} {
		require.Equal(t, want, short(d))
	}
	require.Equal(t, "1,234,567", count(1234567))
	require.Equal(t, "12", count(12))
}
