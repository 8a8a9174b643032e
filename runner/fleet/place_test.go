package fleet_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet"
)

// lagging is a connection to a server of a cluster that learns late about a bucket that another
// owner has made.
type lagging struct {
	jetstream.JetStream
	misses int // number of requests until the server knows the bucket
}

func (l *lagging) ObjectStore(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	if l.misses > 0 {
		l.misses--
		return nil, jetstream.ErrBucketNotFound
	}
	return l.JetStream.ObjectStore(ctx, bucket)
}

// The run of an owner that started at the same moment as another one ended with "there are no
// streams".
func TestMakeAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	conn, err := s.connect(t.Context(), s.address(""))
	require.NoError(t, err)
	defer conn.Close()
	js := conn.JetStream()
	names := fleet.NamesOf("chaos")
	_, err = fleet.Make(t.Context(), js, names, 1)
	require.NoError(t, err)

	late := &lagging{JetStream: js, misses: 3}
	p, err := fleet.Make(t.Context(), late, names, 1)
	require.NoError(t, err)
	require.NotNil(t, p.Files)
	require.Zero(t, late.misses)
}
