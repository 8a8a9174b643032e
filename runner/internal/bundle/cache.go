package bundle

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval/files"
	"waza/runner/pause"
	"waza/runner/workspace"
)

// A process that uses a bundle holds a shared lock on the file HASH.lock next to it. A process
// that changes, creates or removes a bundle holds the lock exclusively. The system releases the
// locks of a process that is killed.
//
//	HASH/            the bundle, complete as soon as it exists
//	HASH.lock        its lock
//	.tmp-HASH-…/     a bundle that is being unpacked

const (
	lockSuffix = ".lock"
	tempPrefix = ".tmp-"
	// maxCache is the maximum size of unused bundles, unless a worker sets a different limit.
	maxCache = 5 << 30
)

// lockPause is the pause between two tries to get a lock.
const lockPause = 50 * time.Millisecond

// lock is a held lock.
type lock struct{ file *os.File }

func (l *lock) release() { _ = l.file.Close() }

// acquire waits for the lock of a bundle: exclusive if no process holds it, or else shared if
// whole reports that the bundle is complete.
func acquire(ctx context.Context, dir string, whole func() bool) (l *lock, alone bool, err error) {
	for {
		if l, err = tryLock(dir, true); l != nil || err != nil {
			return l, true, err
		}
		if whole() {
			if l, err = tryLock(dir, false); l != nil || err != nil {
				return l, false, err
			}
		}
		if err := pause.For(ctx, lockPause); err != nil {
			return nil, false, err
		}
	}
}

// tryLock takes the lock of a bundle. It returns nil if a different process holds it.
func tryLock(dir string, alone bool) (*lock, error) {
	f, err := os.OpenFile(dir+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lock{f}
	ok, err := l.take(alone)
	if err != nil || !ok {
		f.Close()
		return nil, err
	}
	return l, nil
}

// take changes the lock to exclusive or shared. It returns false if a different process took it
// in the meantime; the lock is not held then.
func (l *lock) take(alone bool) (ok bool, err error) {
	acquire := files.LockShared
	if alone {
		acquire = files.Lock
	}
	if err := acquire(l.file); errors.Is(err, files.ErrLocked) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// The process that removed the bundle also removed this file.
	held, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(l.file.Name())
	return err == nil && os.SameFile(held, now), nil
}

// Trim removes unused bundles below dir, least recently used first, until the rest has at most
// limit bytes. It also removes bundles that a killed process unpacked in part. A limit of 0
// means 5 GiB. It does nothing if the directory does not exist.
func Trim(dir string, limit int64) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type bundle struct {
		dir  string
		used time.Time
		size int64
	}
	var bundles []bundle
	var total int64
	for _, e := range list {
		name := e.Name()
		switch {
		case isHash(name) && e.IsDir():
			info, err := e.Info()
			if err != nil {
				continue
			}
			b := bundle{filepath.Join(dir, name), info.ModTime(), workspace.TreeSize(filepath.Join(dir, name))}
			total += b.size
			bundles = append(bundles, b)
		case strings.HasPrefix(name, tempPrefix):
			hash, _, _ := strings.Cut(strings.TrimPrefix(name, tempPrefix), "-")
			if isHash(hash) {
				err = errors.Join(err, removeUnused(filepath.Join(dir, hash), filepath.Join(dir, name)))
			}
		case strings.HasSuffix(name, lockSuffix):
			hash := filepath.Join(dir, strings.TrimSuffix(name, lockSuffix))
			if isHash(filepath.Base(hash)) && !files.IsDir(hash) { // unpacking it failed
				err = errors.Join(err, removeUnused(hash, hash))
			}
		}
	}
	slices.SortFunc(bundles, func(a, b bundle) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.dir, b.dir)) })
	for _, b := range bundles {
		if total <= cmp.Or(limit, maxCache) {
			break
		}
		rerr := removeUnused(b.dir, b.dir)
		if err = errors.Join(err, rerr); rerr == nil && !files.IsDir(b.dir) {
			total -= b.size
		}
	}
	return err
}

// removeUnused removes a directory of a bundle, unless the bundle is in use. It also removes the
// lock of a bundle that does not exist.
func removeUnused(bundle, dir string) error {
	held, err := tryLock(bundle, true)
	if held == nil || err != nil {
		return err
	}
	defer held.release()
	if dir == bundle && files.IsDir(dir) {
		gone := filepath.Join(filepath.Dir(dir), tempPrefix+filepath.Base(dir)+"-"+rand.Text())
		if err := os.Rename(dir, gone); err != nil {
			return err
		}
		dir = gone
	}
	if !files.IsDir(bundle) {
		if err := os.Remove(bundle + lockSuffix); err != nil {
			return err
		}
	}
	return workspace.RemoveAll(dir)
}
