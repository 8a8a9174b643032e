package bundle

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/pause"
)

// Objects are kept in the stream of an object store, but the functions of this file read and
// write them. [jetstream.ObjectStore] sends all chunks of an object at once, in both directions,
// which a busy server or client rejects. It also creates a consumer for each object that is
// read. Here messages are sent one by one:
//
//	$O.BUCKET.C.ID.0   the first chunk; the ID is new for each Put
//	$O.BUCKET.M.NAME   the [jetstream.ObjectInfo], which comes last; NAME is in base64
const (
	// chunkSize is the size of an object's messages, unless the server accepts only smaller
	// ones.
	chunkSize = 512 << 10
	maxChunks = 1 << 16
	// A message without an answer is sent again, which has no effect if it was stored. The time
	// limit is firstTime at first and doubles with each try up to messageTime, which is long for
	// slow connections.
	firstTime   = 5 * time.Second
	messageTime = time.Minute
	// A server that is overloaded or has no leader is asked again after a pause that grows from
	// firstPause to lastPause. So is a server that does not have a message yet because it
	// follows a different server.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	mostTries  = 12 // about half a minute, or some minutes without an answer
	newTries   = 6  // two seconds
)

// bucket is a [Store] in an object store of JetStream.
type bucket struct {
	js      jetstream.JetStream
	objects jetstream.ObjectStore

	mu     sync.Mutex // guards the fields below
	name   string
	ttl    time.Duration
	stream jetstream.Stream // nil before the first request to the server
}

// InBucket returns a store in an object store of JetStream. If the bucket removes objects after
// some time, an object older than half that time counts as missing. It is then put again before
// a process relies on it.
func InBucket(js jetstream.JetStream, o jetstream.ObjectStore) Store {
	return &bucket{js: js, objects: o}
}

// opened is a bucket as described by the server. It is immutable.
type opened struct {
	name   string
	ttl    time.Duration // time after which objects are removed; 0 for never
	stream jetstream.Stream
}

func (o *opened) meta(name string) string {
	return fmt.Sprintf("$O.%s.M.%s", o.name, base64.URLEncoding.EncodeToString([]byte(name)))
}

func (o *opened) chunks(id string) string { return fmt.Sprintf("$O.%s.C.%s", o.name, id) }

// open requests the bucket from the server, once.
func (b *bucket) open(ctx context.Context) (*opened, error) {
	b.mu.Lock()
	o := &opened{b.name, b.ttl, b.stream}
	b.mu.Unlock()
	if o.stream != nil {
		return o, nil
	}
	err := again(ctx, func(ctx context.Context) error {
		status, err := b.objects.Status(ctx)
		if err != nil {
			return err
		}
		o.name, o.ttl = status.Bucket(), status.TTL()
		o.stream, err = b.js.Stream(ctx, "OBJ_"+o.name)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.name, b.ttl, b.stream = o.name, o.ttl, o.stream
	return o, nil
}

func (b *bucket) Has(ctx context.Context, name string) (bool, error) {
	o, err := b.open(ctx)
	if err != nil {
		return false, err
	}
	m, err := o.last(ctx, o.meta(name), 1)
	if errors.Is(err, ErrMissing) {
		return false, nil
	}
	return err == nil && (o.ttl == 0 || time.Since(m.Time) < o.ttl/2), err
}

// again calls do until it succeeds or fails for a permanent reason.
func again(ctx context.Context, do func(ctx context.Context) error) error {
	for try := 1; ; try++ {
		limit := min(messageTime, firstTime<<(try-1))
		once, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the server did not answer within %v", limit))
		err := do(once)
		unanswered := err != nil && once.Err() != nil && ctx.Err() == nil
		if unanswered {
			err = context.Cause(once)
		}
		cancel()
		if !unanswered && !passes(err) || try == mostTries {
			return err
		}
		if err := pause.About(ctx, min(lastPause, firstPause<<(try-1))); err != nil {
			return err
		}
	}
}

// passes reports whether an error of a server is temporary, or might not occur on a different
// server.
func passes(err error) bool {
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok {
		return (refused.Code == http.StatusTooManyRequests || refused.Code == http.StatusServiceUnavailable) &&
			refused.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
	}
	return slices.ContainsFunc([]error{
		jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	}, func(passing error) bool { return errors.Is(err, passing) })
}

// last returns the last message of a subject, or [ErrMissing] if no try finds one.
func (o *opened) last(ctx context.Context, subject string, tries int) (m *jetstream.RawStreamMsg, err error) {
	for try := 1; ; try++ {
		err := again(ctx, func(ctx context.Context) (err error) {
			m, err = o.stream.GetLastMsgForSubject(ctx, subject)
			return err
		})
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return m, err
		}
		if try == tries {
			return nil, ErrMissing
		}
		if err := pause.About(ctx, firstPause<<(try-1)); err != nil {
			return nil, err
		}
	}
}

// purge removes the messages of a subject.
func (o *opened) purge(ctx context.Context, subject string) error {
	return again(ctx, func(ctx context.Context) error { return o.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)) })
}

func (b *bucket) Put(ctx context.Context, name string, r io.Reader) error {
	o, err := b.open(ctx)
	if err != nil {
		return err
	}
	info := jetstream.ObjectInfo{Bucket: o.name, NUID: rand.Text()}
	info.Name = name
	size := min(chunkSize, b.js.Conn().MaxPayload()/2)
	chunks := o.chunks(info.NUID)
	for err == nil {
		var n int64
		var chunk bytes.Buffer
		n, err = io.CopyN(&chunk, r, size)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) {
			break
		}
		if perr := b.publish(ctx, nats.NewMsg(fmt.Sprintf("%s.%d", chunks, info.Chunks)), chunk.Bytes()); perr != nil {
			err = perr
		}
		info.Size, info.Chunks = info.Size+uint64(n), info.Chunks+1
	}
	if errors.Is(err, io.EOF) {
		var content []byte
		if content, err = json.Marshal(info); err == nil {
			m := nats.NewMsg(o.meta(name))
			m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject) // replaces an object with that name
			err = b.publish(ctx, m, content)
		}
	}
	if err != nil && info.Chunks > 0 { // the chunks belong to no object
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = o.purge(ctx, chunks+".>")
	}
	return err
}

// publish publishes a message and waits until the server has stored it.
func (b *bucket) publish(ctx context.Context, m *nats.Msg, content []byte) error {
	m.Data = content
	return again(ctx, func(ctx context.Context) error {
		_, err := b.js.PublishMsg(ctx, m)
		return err
	})
}

// info returns the server's description of an object.
func (o *opened) info(ctx context.Context, name string, tries int) (*jetstream.ObjectInfo, error) {
	m, err := o.last(ctx, o.meta(name), tries)
	if err != nil {
		return nil, err
	}
	info := new(jetstream.ObjectInfo)
	if json.Unmarshal(m.Data, info) != nil || info.Chunks > maxChunks || !isToken(info.NUID) {
		return nil, errAltered
	}
	return info, nil
}

// isToken reports whether a text can be a token of a subject unchanged.
func isToken(s string) bool {
	for _, r := range s {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') {
			return false
		}
	}
	return s != ""
}

func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	info, err := o.info(ctx, name, newTries)
	if err != nil {
		return nil, err
	}
	return &object{ctx: ctx, in: o, subject: o.chunks(info.NUID), count: int(info.Chunks)}, nil
}

// object reads an object, chunk by chunk.
type object struct {
	ctx     context.Context
	in      *opened
	subject string
	count   int
	next    int
	rest    []byte // rest of the chunk fetched last
}

func (o *object) Read(b []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.next == o.count {
			return 0, io.EOF
		}
		m, err := o.in.last(o.ctx, fmt.Sprintf("%s.%d", o.subject, o.next), newTries)
		if err != nil {
			return 0, err
		}
		o.next, o.rest = o.next+1, m.Data
	}
	n := copy(b, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func (*object) Close() error { return nil }

func (b *bucket) Delete(ctx context.Context, name string) error {
	o, err := b.open(ctx)
	if err != nil {
		return err
	}
	info, err := o.info(ctx, name, 1)
	if errors.Is(err, ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := o.purge(ctx, o.meta(name)); err != nil || info.Chunks == 0 {
		return err
	}
	return o.purge(ctx, o.chunks(info.NUID)+".>")
}
