package fleet_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet"
	"waza/runner/fleet/seal"
	"waza/runner/fleet/worker"
	"waza/runner/runnertest"
)

// Workers with --trust refuse orders unless they are signed with a trusted key.
func TestTrust(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	dir := t.TempDir()
	known, err := seal.NewKey(dir + "/known")
	require.NoError(t, err)
	_, err = seal.NewKey(dir + "/other")
	require.NoError(t, err)
	trust, err := seal.ReadTrust(known)
	require.NoError(t, err)
	careful := s.work(1, "", func(o *worker.Options) { o.Trust = trust })

	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request("sign="+dir+"/known"))
	<-live.Done()
	requirePassed(t, live, 4)
	for _, parameters := range []string{"", "sign=" + dir + "/other"} {
		live = runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request(parameters))
		<-live.Done()
		res := runnertest.ResultOf(t, live)
		require.Equal(t, 4, res.Summary.Trials.Errors, parameters)
		require.Contains(t, res.Tasks[0].Trials[0].Error, "refuses the order: not trusted: ")
	}
	require.EqualValues(t, 4, careful.Status().Done)
}

// An order that was changed, or copied from a different order, is refused.
func TestAlteredOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	dir := t.TempDir()
	public, err := seal.NewKey(dir + "/owner")
	require.NoError(t, err)
	trust, err := seal.ReadTrust(public)
	require.NoError(t, err)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request("sign="+dir+"/owner"))
	conn, err := s.connect(t.Context(), s.address(""))
	require.NoError(t, err)
	defer conn.Close()
	names := fleet.NamesOf("waza")
	var orders jetstream.Stream
	require.Eventually(t, func() bool {
		orders, err = conn.JetStream().Stream(t.Context(), names.Orders)
		return err == nil && orders.CachedInfo().State.Msgs == 2
	}, time.Minute, 5*time.Millisecond)
	first, err := orders.GetMsg(t.Context(), orders.CachedInfo().State.FirstSeq)
	require.NoError(t, err)
	other, err := orders.GetMsg(t.Context(), orders.CachedInfo().State.LastSeq)
	require.NoError(t, err)
	for i, data := range [][]byte{bytes.Replace(first.Data, []byte(`"num":1`), []byte(`"num":7`), 1), other.Data} {
		require.NoError(t, orders.DeleteMsg(t.Context(), orders.CachedInfo().State.FirstSeq+uint64(i)))
		msg := nats.NewMsg([]string{first.Subject, other.Subject}[i])
		msg.Data = data
		msg.Header.Set(seal.HeaderKey, first.Header.Get(seal.HeaderKey))
		msg.Header.Set(seal.HeaderSignature, first.Header.Get(seal.HeaderSignature))
		_, err = conn.JetStream().PublishMsg(t.Context(), msg)
		require.NoError(t, err)
	}
	s.work(1, "", func(o *worker.Options) { o.Trust = trust })
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 2, res.Summary.Trials.Errors)
	require.Contains(t, res.Tasks[0].Trials[0].Error, "not trusted")
	require.Contains(t, res.Tasks[1].Trials[0].Error, "not trusted")
}
