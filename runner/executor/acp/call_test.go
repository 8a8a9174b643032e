package acp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Permission requests are handled concurrently with updates, so a request can arrive before the
// update that announces its call. Once, such a tool was named after the request's title.
func TestToolIsNamedByItsAnnouncement(t *testing.T) {
	t.Parallel()
	opencode, ok := presetNamed("opencode")
	require.True(t, ok)
	asked, announced, later := "edit", "write", "hello.txt"
	c := &call{}
	c.merge(&part{Title: &asked, Kind: "edit"}, &opencode)
	c.merge(&part{Title: &announced, announces: true}, &opencode)
	c.merge(&part{Title: &later, Kind: "edit", Status: "completed"}, &opencode)
	require.Equal(t, "write", c.Name)
	require.Equal(t, "hello.txt", c.Title)
}
