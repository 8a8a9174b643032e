package rpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

type shownPage struct {
	Status string
	Data   struct {
		Run struct {
			RunID   string
			Against *struct{ RunID string }
		}
		Tasks  []struct{ ID, Verdict string }
		Trials struct {
			Num     []int
			Verdict string
		}
	}
	Page *struct{ Style, Body, Script string }
}

// A page contains the data of the report. It contains the program only on request.
func TestPage(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	path := suite(t, many(2, 3, 1))
	before := c.start(map[string]any{"path": path})
	c.follow(before)
	id := c.start(map[string]any{"path": path})
	c.follow(id)

	var page shownPage
	c.must("run.page", map[string]any{"runId": id, "against": before, "page": true}, &page)
	require.Equal(t, "completed", page.Status)
	require.Equal(t, id, page.Data.Run.RunID)
	require.Equal(t, before, page.Data.Run.Against.RunID)
	require.Equal(t, []int{1, 2, 3, 1, 2, 3}, page.Data.Trials.Num)
	require.Len(t, page.Data.Trials.Verdict, 6)
	require.Contains(t, page.Page.Script, "function wazaReport(DATA, HOST")
	require.Contains(t, page.Page.Body, `id="table"`)
	require.NotEmpty(t, page.Page.Style)

	page = shownPage{}
	c.must("run.page", map[string]any{"runId": id}, &page)
	require.Nil(t, page.Page)
	require.Nil(t, page.Data.Run.Against)
}

// An exported report can compare runs, too.
func TestExportAgainst(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	path := suite(t, many(1, 1, 1))
	before := c.start(map[string]any{"path": path})
	c.follow(before)
	id := c.start(map[string]any{"path": path})
	c.follow(id)
	var out exported
	c.must("run.export", map[string]any{"runId": id, "format": "html", "against": before}, &out)
	require.Contains(t, out.Content, `"against":{"runId":"`+before+`"`)
}
