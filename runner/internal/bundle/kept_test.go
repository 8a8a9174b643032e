package bundle

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/workspace"
)

// journal keeps contents like the journal of a run.
type journal struct {
	mu   sync.Mutex
	list [][]byte
	err  error
}

func (j *journal) Put(content []byte) (record.Blob, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(content) == 0 {
		return record.Blob{Hash: hashOf(nil)[:recordHash]}, j.err
	}
	j.list = append(j.list, bytes.Clone(content))
	return record.Blob{Hash: hashOf(content)[:recordHash], Size: int64(len(content)), At: int64(len(j.list)), Length: 1}, j.err
}

func (j *journal) get(b *record.Blob) string {
	if b.Length == 0 {
		return ""
	}
	return string(j.list[b.At-1])
}

// left puts files into a keeper and returns the result of a trial that references them.
func left(t *testing.T, k workspace.Keeper, files ...string) *record.Trial {
	t.Helper()
	s := &record.Snapshot{}
	for i, content := range files {
		b, err := k.Put([]byte(content))
		require.NoError(t, err)
		require.Zero(t, b.At)
		s.Entries = append(s.Entries, record.SnapshotEntry{Path: fmt.Sprint(i), Type: record.EntryFile, Blob: &b})
	}
	return &record.Trial{Workspace: s}
}

// travel encodes and decodes a value.
func travel[T any](t *testing.T, v T) (out T) {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// noise returns data that cannot be compressed.
func noise(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return string(b)
}

// The files of trials arrive in the owner's journal, small ones with the result and large ones
// through the store, from which they are deleted.
func TestParcels(t *testing.T) {
	t.Parallel()
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("file %d", i)
	}
	for name, c := range map[string]struct {
		files   []string
		objects int
	}{
		"small":   {[]string{"a", "", "a", "\x00\xff binary", strings.Repeat("x", 100_000)}, 0},
		"large":   {[]string{"a", noise(300 << 10)}, 1},
		"largest": {[]string{noise(maxContent), "a", noise(maxContent)}, 2},
		"many":    {many, 0},
		"empty":   {[]string{""}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, store, dir, o := t.Context(), InDir(t.TempDir()), filepath.Join(t.TempDir(), "left"), &record.Order{}
			k := NewKept(dir, nil)
			trial := left(t, k.Of(o), c.files...)
			removed := trial.Workspace.Entries[0]
			removed.Before, removed.Blob = removed.Blob, nil
			trial.Workspace.Removed = append(trial.Workspace.Removed, removed)
			p, err := k.Send(ctx, store, o, trial)
			require.NoError(t, err)
			require.LessOrEqual(t, p.Size(), maxInlined)
			k.Drop(o)
			list, err := os.ReadDir(dir)
			require.True(t, os.IsNotExist(err) || len(list) == 0, "files have no name")
			objects, _ := os.ReadDir(store.(directory).dir)
			require.Len(t, objects, c.objects)

			j := &journal{}
			trial, p = travel(t, trial), travel(t, p)
			require.NoError(t, p.Unload(ctx, store, trial, j, Limits{}))
			for i, e := range trial.Workspace.Entries {
				require.Empty(t, e.Omitted)
				require.Equal(t, c.files[i], j.get(e.Blob))
			}
			require.Equal(t, c.files[0], j.get(trial.Workspace.Removed[0].Before))
			require.NoError(t, p.Delete(ctx, store))
			objects, _ = os.ReadDir(store.(directory).dir)
			require.Empty(t, objects)
		})
	}
}

// The files of two trials are independent: dropping one trial does not affect the other.
func TestKeptApart(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), InDir(t.TempDir())
	k := NewKept(t.TempDir(), nil)
	a, b := &record.Order{}, &record.Order{}
	first, second := left(t, k.Of(a), "same", noise(inMemory+1)), left(t, k.Of(b), "same")
	require.Same(t, k.Of(a), k.Of(a))
	_, err := k.Send(ctx, store, a, first)
	require.NoError(t, err)
	k.Drop(a)
	k.Drop(a)
	p, err := k.Send(ctx, store, b, second)
	require.NoError(t, err)
	j := &journal{}
	require.NoError(t, p.Unload(ctx, store, second, j, Limits{}))
	require.Equal(t, "same", j.get(second.Workspace.Entries[0].Blob))
	k.Drop(b)

	p, err = k.Send(ctx, store, b, second)
	require.NoError(t, err)
	require.Nil(t, p, "nothing is kept of it any more")
	require.NoError(t, p.Delete(ctx, store))
	require.Zero(t, p.Size())
}

// Unchanged files of the bundle are not sent back.
func TestParcelsShareTheBundle(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	ctx, store := t.Context(), InDir(t.TempDir())
	packed, err := Pack(ctx, store, contents(dir, o))
	require.NoError(t, err)
	u, err := Unpack(ctx, store, packed.Hash(), t.TempDir(), Limits{})
	require.NoError(t, err)
	defer u.Close()
	k := NewKept(t.TempDir(), u)
	medium, large := strings.Repeat("medium", 10_000), strings.Repeat("large", 500_000)
	trial := left(t, k.Of(o), medium, large, "new")
	p, err := k.Send(ctx, store, o, trial)
	k.Drop(o)
	require.NoError(t, err)
	require.Len(t, p.Shared, 2)
	require.Less(t, p.Size(), 200)
	j := &journal{}
	p = travel(t, p)
	require.NoError(t, p.Unload(ctx, store, trial, j, Limits{}))
	for i, want := range []string{medium, large, "new"} {
		require.Equal(t, want, j.get(trial.Workspace.Entries[i].Blob))
	}
	require.NoError(t, p.Delete(ctx, store))
	_, err = Fetch(ctx, store, hashOf([]byte(large)), 1<<30)
	require.NoError(t, err, "the bundle stays")
}

// Lost, altered or too large contents are reported, and the result is kept.
func TestUnloadOfWhatIsLost(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	send := func() (Store, *Parcel, *record.Trial) {
		store, o, k := InDir(t.TempDir()), &record.Order{}, NewKept(t.TempDir(), nil)
		trial := left(t, k.Of(o), noise(maxPiece), "small", "")
		trial.Workspace.Entries[1].Given = record.GivenChanged
		trial.Workspace.Entries[1].Before = trial.Workspace.Entries[0].Blob
		p, err := k.Send(ctx, store, o, trial)
		require.NoError(t, err)
		require.Len(t, p.Pieces, 2)
		k.Drop(o)
		return store, travel(t, p), travel(t, trial)
	}
	check := func(name string, store Store, p *Parcel, trial *record.Trial, l Limits, lost ...bool) {
		t.Helper()
		j := &journal{}
		require.NoError(t, p.Unload(ctx, store, trial, j, l), name)
		for i, e := range trial.Workspace.Entries {
			require.Equal(t, lost[i], e.Blob == nil, name)
			require.Equal(t, lost[i], e.Omitted != "", name)
		}
	}
	object := func(p *Parcel) *piece {
		for i := range p.Pieces {
			if p.Pieces[i].Object != "" {
				return &p.Pieces[i]
			}
		}
		return nil
	}
	store, p, trial := send()
	require.NoError(t, store.Delete(ctx, object(p).Object))
	check("missing", store, p, trial, Limits{}, true, false, false)
	require.Nil(t, trial.Workspace.Entries[1].Before)
	require.Equal(t, record.GivenUnknown, trial.Workspace.Entries[1].Given)

	store, p, trial = send()
	require.NoError(t, store.Put(ctx, object(p).Object, strings.NewReader("altered")))
	check("altered", store, p, trial, Limits{}, true, false, false)

	store, p, trial = send()
	check("too much", store, p, trial, Limits{Bytes: 1000}, true, false, false)

	store, _, trial = send()
	check("nothing", store, nil, trial, Limits{}, true, true, false)

	store, p, trial = send()
	object(p).Object = "../../etc/passwd"
	check("no hash", store, p, trial, Limits{}, true, false, false)

	store, p, trial = send()
	for i := range p.Pieces {
		if p.Pieces[i].Object == "" {
			p.Pieces[i].Inline = p.Pieces[i].Inline[:len(p.Pieces[i].Inline)-18]
		}
	}
	p.Shared = append(p.Shared, "x", hashOf([]byte("unasked")))
	trial.Workspace.Entries[2].Size = 1 << 40
	check("torn", store, p, trial, Limits{}, false, true, false)
	require.Zero(t, trial.Workspace.Entries[2].Size, "sizes of the kept contents")
}

// A temporary error ends the unloading.
func TestUnloadErrors(t *testing.T) {
	t.Parallel()
	store, o, k := InDir(t.TempDir()), &record.Order{}, NewKept(t.TempDir(), nil)
	trial := left(t, k.Of(o), noise(maxPiece), "small")
	p, err := k.Send(t.Context(), store, o, trial)
	require.NoError(t, err)
	k.Drop(o)
	require.ErrorIs(t, p.Unload(t.Context(), store, travel(t, trial), &journal{err: os.ErrPermission}, Limits{}), os.ErrPermission)
	require.ErrorIs(t, p.Unload(t.Context(), broken{store}, travel(t, trial), &journal{}, Limits{}), os.ErrDeadlineExceeded)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Unload(canceled, store, travel(t, trial), &journal{}, Limits{}), context.Canceled)
}

// broken is a store that does not answer.
type broken struct{ Store }

func (broken) Get(context.Context, string) (io.ReadCloser, error) {
	return nil, os.ErrDeadlineExceeded
}

// Kept contents match their hashes, regardless of what a worker sends.
func FuzzParcel(f *testing.F) {
	k, o := NewKept(f.TempDir(), nil), &record.Order{}
	b, _ := k.Of(o).Put([]byte("content"))
	p, err := k.Send(f.Context(), InDir(f.TempDir()), o,
		&record.Trial{Workspace: &record.Snapshot{Entries: []record.SnapshotEntry{{Blob: &b}}}})
	if err != nil {
		f.Fatal(err)
	}
	good, _ := json.Marshal(p)
	f.Add(good, b.Hash)
	f.Add([]byte(`{"shared":["x"],"pieces":[{"size":-1,"inline":"H4sI"}]}`), "x")
	f.Fuzz(func(t *testing.T, parcel []byte, hash string) {
		p := new(Parcel)
		if json.Unmarshal(parcel, p) != nil {
			return
		}
		trial := &record.Trial{
			Workspace: &record.Snapshot{Entries: []record.SnapshotEntry{{Path: "a", Blob: &record.Blob{Hash: hash, At: 1, Length: 9}}}},
		}
		j := &journal{}
		require.NoError(t, p.Unload(t.Context(), InDir(t.TempDir()), trial, j, Limits{}))
		if e := trial.Workspace.Entries[0]; e.Blob != nil {
			require.Equal(t, hash, hashOf([]byte(j.get(e.Blob)))[:recordHash])
		} else {
			require.NotEmpty(t, e.Omitted)
		}
	})
}
