package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/eval/files"
	"waza/runner/fleet/fleettest"
)

var bucketConfig = jetstream.ObjectStoreConfig{}

// inBucket returns a store in an object store of a new server.
func inBucket(t *testing.T, config jetstream.ObjectStoreConfig) Store {
	t.Helper()
	conn, err := nats.Connect(fleettest.Server(t))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	config.Bucket = "FILES"
	o, err := js.CreateObjectStore(t.Context(), config)
	require.NoError(t, err)
	return InBucket(js, o)
}

func TestStores(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Store{"directory": InDir(t.TempDir() + "/store"), "bucket": inBucket(t, jetstream.ObjectStoreConfig{})} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			content := bytes.Repeat([]byte("content "), 700_000) // in several chunks
			hash := hashOf(content)
			has, err := s.Has(ctx, hash)
			require.NoError(t, err)
			require.False(t, has)
			_, err = Fetch(ctx, s, hash, 1<<30)
			require.ErrorIs(t, err, ErrMissing)
			require.NoError(t, s.Delete(ctx, hash))

			kept, err := Keep(ctx, s, content)
			require.NoError(t, err)
			require.Equal(t, hash, kept)
			has, err = s.Has(ctx, hash)
			require.NoError(t, err)
			require.True(t, has)
			got, err := Fetch(ctx, s, hash, 1<<30)
			require.NoError(t, err)
			require.Equal(t, content, got)
			_, err = Fetch(ctx, s, hash, 1000)
			require.ErrorIs(t, err, files.ErrTooLarge)
			_, err = Fetch(ctx, s, "../secret", 1000)
			require.ErrorContains(t, err, "must be SHA-256")

			// An object that was replaced is rejected.
			require.NoError(t, s.Put(ctx, hash, strings.NewReader("other")))
			_, err = Fetch(ctx, s, hash, 1<<30)
			require.ErrorIs(t, err, errAltered)

			// An object whose content cannot be read to its end is not stored.
			torn := io.MultiReader(bytes.NewReader(content), &failing{errors.New("torn")})
			empty := hashOf(nil)
			require.ErrorContains(t, s.Put(ctx, empty, torn), "torn")
			has, err = s.Has(ctx, empty)
			require.NoError(t, err)
			require.False(t, has)
			require.NoError(t, s.Put(ctx, empty, strings.NewReader("")))
			got, err = Fetch(ctx, s, empty, 0)
			require.NoError(t, err)
			require.Empty(t, got)

			require.NoError(t, s.Put(ctx, hash, bytes.NewReader(content)))
			got, err = Fetch(ctx, s, hash, 1<<30)
			require.NoError(t, err)
			require.Equal(t, content, got)
			require.NoError(t, s.Delete(ctx, hash))
			_, err = Fetch(ctx, s, hash, 1<<30)
			require.ErrorIs(t, err, ErrMissing)
			if b, ok := s.(*bucket); ok {
				info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter("$O.FILES.M.>"))
				require.NoError(t, err)
				require.Len(t, info.State.Subjects, 1, "the empty object")
				info, err = b.stream.Info(ctx, jetstream.WithSubjectFilter("$O.FILES.C.>"))
				require.NoError(t, err)
				require.Len(t, info.State.Subjects, 12,
					"chunks of replaced objects remain until they expire; those of incomplete or deleted objects are gone")
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			require.Error(t, s.Put(canceled, hash, bytes.NewReader(content)))
		})
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// An object that the server will remove soon is put again.
func TestBucketRenewsObjects(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]bool{time.Hour: true, time.Nanosecond: false} {
		b := inBucket(t, jetstream.ObjectStoreConfig{TTL: time.Hour}).(*bucket)
		hash, err := Keep(t.Context(), b, []byte("x"))
		require.NoError(t, err)
		b.ttl = ttl
		has, err := b.Has(t.Context(), hash)
		require.NoError(t, err)
		require.Equal(t, want, has)
	}
	b := inBucket(t, jetstream.ObjectStoreConfig{TTL: time.Hour}).(*bucket)
	_, err := Keep(t.Context(), b, []byte("x"))
	require.NoError(t, err)
	_, err = b.Has(t.Context(), hashOf([]byte("x")))
	require.NoError(t, err)
	require.Equal(t, time.Hour, b.ttl)
}

// Objects are written and read while servers of a cluster are killed, including the leader.
func TestBucketOutlivesServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	servers := fleettest.Cluster(t)
	conn, err := nats.Connect(servers.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	o, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "FILES", Replicas: 3})
	require.NoError(t, err)
	s := InBucket(js, o)
	contents := map[string][]byte{}
	for i := range servers.Len() {
		written := make(chan error, 1)
		var hashes []string
		started := make(chan struct{})
		go func() {
			for n := range 15 {
				content := bytes.Repeat([]byte(fmt.Sprintf("%d %d ", i, n)), 40_000) // two chunks
				hash, err := Keep(t.Context(), s, content)
				if err != nil {
					written <- err
					return
				}
				contents[hash] = content
				if hashes = append(hashes, hash); n == 3 {
					close(started)
				}
			}
			written <- nil
		}()
		select {
		case <-started:
		case err := <-written:
			require.NoError(t, err)
		}
		servers.Kill(i)
		require.NoError(t, <-written)
		for _, hash := range hashes {
			got, err := Fetch(t.Context(), s, hash, 1<<30)
			require.NoError(t, err)
			require.True(t, bytes.Equal(contents[hash], got))
		}
		servers.Start(i)
	}
	for hash := range contents {
		require.NoError(t, s.Delete(t.Context(), hash))
	}
}
