package acp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request for permission is handled beside the updates and may overtake the
// one that announces its call. The tool was named by what the request calls it.
func TestToolIsNamedByItsAnnouncement(t *testing.T) {
	t.Parallel()
	opencode, ok := presetNamed("opencode")
	require.True(t, ok)
	asked, announced, later := "edit", "write", "hello.txt"
	c := &call{}
	c.take(&part{Title: &asked, Kind: "edit"}, &opencode)
	c.take(&part{Title: &announced, announces: true}, &opencode)
	c.take(&part{Title: &later, Kind: "edit", Status: "completed"}, &opencode)
	require.Equal(t, "write", c.Name)
	require.Equal(t, "hello.txt", c.Title)
}
