package survey_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/survey"
	"waza/runner/record"
)

func connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(fleettest.Server(t))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	return js
}

// The survey of a team that has not used the fleet is empty, and taking it creates nothing.
func TestUnused(t *testing.T) {
	t.Parallel()
	js := connect(t)
	s, err := survey.Read(t.Context(), js, "search")
	require.NoError(t, err)
	require.False(t, s.Used)
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(b), `"classes":[],"runs":[],"workers":[]`)
	for range js.StreamNames(t.Context()).Name() {
		t.Error("a stream was created")
	}
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	js, ctx := connect(t), t.Context()
	place, err := fleet.Make(ctx, js, fleet.NamesOf("search"), 1)
	require.NoError(t, err)
	needs := []record.Need{{Kind: record.NeedAgent, Name: "copilot"}}
	class := offer.Class(needs)
	require.NoError(t, place.MakeClass(ctx, class, needs, time.Minute, 1))
	require.NoError(t, place.MakeClass(ctx, offer.Any, nil, time.Minute, 1))
	for _, id := range []string{"1-1-a", "1-2-b", "1-3-c"} {
		_, err := js.Publish(ctx, place.Order(class, "20260102-030405.678-run", id), []byte("order"))
		require.NoError(t, err)
	}
	c, err := js.Consumer(ctx, place.Orders, class)
	require.NoError(t, err)
	_, err = c.Next()
	require.NoError(t, err)
	_, err = js.Publish(ctx, place.Result("20260102-030405.678-run"), []byte("result"))
	require.NoError(t, err)

	put := func(kv jetstream.KeyValue, key string, card any) {
		b, err := json.Marshal(card)
		require.NoError(t, err)
		_, err = kv.Put(ctx, key, b)
		require.NoError(t, err)
	}
	now := time.Now().UTC()
	has := &offer.Offer{OS: "linux", Arch: "amd64", Agents: []string{"copilot"}, Labels: []string{"gpu"}}
	for _, w := range []fleet.WorkerCard{
		{WorkerStanding: fleet.WorkerStanding{ID: "b", Slots: 4, Busy: 1, Done: 7}, Offer: has,
			Lacks: map[string][]record.Need{class: nil, offer.Any: nil}},
		{WorkerStanding: fleet.WorkerStanding{ID: "a", Slots: 2}, Offer: &offer.Offer{},
			Lacks: map[string][]record.Need{class: needs, offer.Any: nil}},
		{WorkerStanding: fleet.WorkerStanding{ID: "draining", Slots: 8, Draining: true}, Lacks: map[string][]record.Need{class: nil}},
		{WorkerStanding: fleet.WorkerStanding{ID: "new", Slots: 16}},
	} {
		w.Protocol, w.Seen = fleet.Protocol, now
		put(place.Workers, fleet.WorkerKey(w.ID), w)
	}
	_, err = place.Workers.Put(ctx, fleet.WorkerKey("broken"), []byte("{"))
	require.NoError(t, err)
	for _, r := range []fleet.RunStanding{
		{Run: "old", State: fleet.Over, Created: now},
		{Run: "lost", State: fleet.Running, Created: now.Add(-time.Hour), Seen: now.Add(-time.Minute)},
		{Run: "live", State: fleet.Running, Created: now, Seen: now, Trials: 9, Waiting: 2, Running: 1},
	} {
		put(place.State, fleet.RunKey(r.Run), fleet.RunCard{RunStanding: r})
	}

	// The server counts the waiting messages of a consumer soon after it has stored them.
	var s *survey.Survey
	require.Eventually(t, func() bool {
		s, err = survey.Read(ctx, js, "search")
		return err != nil || s.Classes[0].Waiting > 0
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, err)
	require.True(t, s.Used)
	require.EqualValues(t, 3, s.Orders.Messages)
	require.EqualValues(t, 1, s.Results.Messages)
	require.Positive(t, s.Orders.Limit)
	require.Equal(t, []survey.Class{
		{Name: class, Needs: needs, Waiting: 2, Running: 1, Workers: 1, Slots: 4},
		{Name: offer.Any, Workers: 2, Slots: 6},
	}, s.Classes)
	var names []string
	for _, w := range s.Workers {
		names = append(names, w.ID)
	}
	require.Equal(t, []string{"a", "b", "draining", "new"}, names)
	require.Equal(t, "agent copilot; label gpu; linux/amd64", s.Workers[1].Offers)
	require.Equal(t, map[string]string{class: "the agent copilot is not installed"}, s.Workers[0].Lacks)
	require.Nil(t, s.Workers[1].Lacks)
	names = nil
	for _, r := range s.Runs {
		names = append(names, r.Run)
		require.Equal(t, r.Run == "lost", r.Silent, r.Run)
	}
	require.Equal(t, []string{"live", "lost", "old"}, names)

	other, err := survey.Read(ctx, js, "other")
	require.NoError(t, err)
	require.False(t, other.Used)
}
