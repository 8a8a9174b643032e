package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/relocate"
	"waza/runner/internal/checkout"
	"waza/runner/record"
)

const (
	// smallFile is the size from which a file is an object of its own. maxInline is the maximum
	// number of bytes of smaller files in the manifest.
	smallFile = 4 << 10
	maxInline = 4 << 20
	// readWhole is the maximum size of files that are read into memory.
	readWhole = 1 << 20
	// atOnce is the number of files that are sent or fetched concurrently.
	atOnce = 16
)

// Contents are the inputs of trials that [Pack] packs.
type Contents struct {
	// Orders are orders of a run, one for each task.
	Orders []*record.Order
	// Files are the files that the plan depends on, by absolute path, with the digests of their
	// contents as in [plan.Digests].
	Files map[string]string
	// Without are absolute directories that are not packed as part of a directory.
	Without []string
	// Limits are the limits of the bundle.
	Limits Limits
}

// Packed is a bundle in a store, for its owner. It is immutable and safe for concurrent use.
type Packed struct {
	hash   string
	copier *relocate.Copier
	files  int
	bytes  int64
	sent   int64
}

// Pack puts everything that trials need into the store, unless it is already there:
//
//   - the files that the plan depends on
//   - the directory of the suite, without .git, node_modules, .venv, __pycache__, .env and its dataset
//   - the directories of the tasks' skills and the user's fixture directory, with the same exceptions
//   - commits of git repositories that tasks name, with their history
//
// It keeps links whose target is in one of these directories, and links that the suite names. It
// returns an error if a limit is exceeded, or a file of the plan changed since the run was planned.
func Pack(ctx context.Context, s Store, c Contents) (*Packed, error) {
	p := &packer{ctx: ctx, store: s, limits: c.Limits.orDefaults()}
	list, err := p.collect(c)
	if err != nil {
		return nil, fmt.Errorf("files for the fleet: %w", err)
	}
	m := &manifest{Version: manifestVersion}
	if err := p.send(list); err != nil {
		return nil, fmt.Errorf("files for the fleet: %w", err)
	}
	if m.Repos, err = p.sendRepos(c.Orders); err != nil {
		return nil, fmt.Errorf("files for the fleet: %w", err)
	}
	known := map[string]bool{}
	list = slices.DeleteFunc(list, func(src *source) bool { return src.gone })
	for _, src := range list {
		m.Entries = append(m.Entries, src.entry)
		known[src.Path] = true
	}
	b, err := json.Marshal(m)
	if err == nil && len(b) > maxManifest {
		err = fmt.Errorf("the list of files must have at most %s, got %s", files.Size(maxManifest), about(int64(len(b))))
	}
	if err == nil {
		_, err = decode(b, p.limits) // rejects everything that workers would reject
	}
	if err != nil {
		return nil, fmt.Errorf("files for the fleet: %w", err)
	}
	hash, err := Keep(ctx, s, b)
	if err != nil {
		return nil, fmt.Errorf("files for the fleet: %w", err)
	}
	return &Packed{
		hash: hash, files: len(list), bytes: p.bytes, sent: p.sent + int64(len(b)),
		copier: p.places.outgoing(func(path string) bool { return known[path] }),
	}, nil
}

// Hash returns the name of the bundle.
func (p *Packed) Hash() string { return p.hash }

// Count returns the number of files and directories of the bundle, the size of its files, and
// the number of bytes that were not in the store before.
func (p *Packed) Count() (files int, bytes, sent int64) { return p.files, p.bytes, p.sent }

// Relocate returns an order with portable paths, which [Unpacked.Relocate] makes local again.
// The order must be one of the packed orders, or share its suite and task with one.
func (p *Packed) Relocate(o *record.Order) (*record.Order, error) { return o.Relocate(p.copier) }

// packer packs one bundle.
type packer struct {
	ctx    context.Context
	store  Store
	limits Limits
	places *places

	mu          sync.Mutex // guards the fields below
	bytes, sent int64
}

// collect finds the files to pack.
func (p *packer) collect(c Contents) ([]*source, error) {
	need, err := gather(c.Orders)
	if err != nil {
		return nil, err
	}
	roots := slices.AppendSeq(slices.Collect(maps.Keys(need.files)), maps.Keys(c.Files))
	p.places = newPlaces(roots)
	p.places.repos = slices.Sorted(maps.Keys(need.repos))
	col := &collector{
		ctx: p.ctx, limits: p.limits, places: p.places, found: map[string]*source{}, trees: map[string]bool{},
		without: c.Without, named: map[string]bool{},
	}
	col.allow(nil, slices.AppendSeq(slices.Collect(maps.Keys(c.Files)), maps.Keys(need.files))...)
	for _, o := range c.Orders {
		col.allow(treesOf(o), o.Suite.FixtureDir(o.Task.ContextDir))
	}
	for file, digest := range c.Files {
		if _, err := col.file(file, digest); err != nil {
			return nil, err
		}
	}
	for _, o := range c.Orders {
		if err := p.collectOrder(col, o, need); err != nil {
			return nil, err
		}
	}
	for _, root := range p.places.roots { // they must exist, even if they are empty
		if _, err := col.file(root, ""); err != nil {
			return nil, err
		}
	}
	return col.entries()
}

// treesOf returns the directories that are packed as a whole for the trials of one task.
func treesOf(o *record.Order) []string {
	return slices.DeleteFunc(append([]string{o.Suite.Dir, o.Suite.Fixtures}, o.Task.Skills...), func(dir string) bool { return dir == "" })
}

// collectOrder finds the files that the trials of one task need.
func (p *packer) collectOrder(col *collector, o *record.Order, need *needed) error {
	suite := o.Suite
	except := map[string]bool{}
	if suite.TasksFrom != "" {
		except[suite.Path(suite.TasksFrom)] = true
	}
	for _, dir := range treesOf(o) {
		if err := col.tree(dir, except); err != nil {
			return err
		}
	}
	single := []string{suite.FixtureDir(o.Task.ContextDir), suite.File, o.Task.File}
	for _, f := range slices.Concat(suite.Instructions, o.Task.Instructions) {
		single = append(single, f.Path)
	}
	for file := range need.words {
		if reach.Within(suite.Root(), file) || suite.Fixtures != "" && reach.Within(suite.Fixtures, file) {
			single = append(single, file)
		}
	}
	for _, file := range single {
		if file == "" || except[file] {
			continue
		}
		if _, err := col.file(file, ""); err != nil {
			return err
		}
	}
	return nil
}

// send puts the contents of files into the store, and small ones into their entries.
func (p *packer) send(list []*source) error {
	var sending []*source
	inline := int64(0)
	for _, src := range list {
		if src.Dir || src.Link != "" {
			continue
		}
		if src.Size < smallFile && inline+src.Size <= maxInline {
			inline += src.Size
			src.Data = []byte{}
		}
		sending = append(sending, src)
	}
	return each(p.ctx, sending, p.sendFile)
}

// errChanged is the error for a file that changed since the run was planned.
var errChanged = errors.New("file changed since the run was planned; start the run again")

// errChanging is the error for a file that changes each time it is read.
var errChanging = errors.New("file changes while it is read; write it outside the suite's directory")

// mostReads is how often a file is read that is not in the plan and changes meanwhile.
const mostReads = 3

func (p *packer) sendFile(ctx context.Context, src *source) error {
	err := p.sendContent(ctx, src)
	for n := 1; src.digest == "" && errors.Is(err, errChanged); n++ {
		info, serr := os.Stat(src.file)
		switch {
		case serr != nil:
			err = serr
		case n == mostReads || info.Size() > p.limits.FileBytes || src.Data != nil && info.Size() >= smallFile:
			err = errChanging
		default:
			src.Size = info.Size()
			err = p.sendContent(ctx, src)
		}
	}
	if src.digest == "" && errors.Is(err, fs.ErrNotExist) {
		src.gone = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", src.file, err)
	}
	return nil
}

func (p *packer) sendContent(ctx context.Context, src *source) error {
	root, _, _ := p.places.find(src.file)
	open := func() (*os.File, error) { return files.OpenWithin(p.places.roots[root], src.file) }
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	var whole bytes.Buffer
	var sum string
	if src.Size <= readWhole {
		if err := files.Copy(ctx, &whole, f, readWhole); err != nil {
			return err
		}
		sum = hashOf(whole.Bytes())
	} else if sum, err = hashFile(ctx, f, src.Size); err != nil {
		return err
	}
	if src.Size <= readWhole && int64(whole.Len()) != src.Size || src.digest != "" && src.digest != sum[:len(src.digest)] {
		return errChanged
	}
	p.count(src.Size, 0)
	switch {
	case src.Size == 0:
		src.Data = nil
		return nil
	case src.Data != nil:
		src.Data = whole.Bytes()
		return nil
	}
	src.Hash = sum
	if has, err := p.store.Has(ctx, sum); err != nil || has {
		return err
	}
	var content io.Reader = &whole
	if src.Size > readWhole {
		again, err := open()
		if err != nil {
			return err
		}
		defer again.Close()
		content = newChecked(again, sum)
	}
	err = p.store.Put(ctx, sum, reading{ctx, content})
	if errors.Is(err, errAltered) {
		err = errChanged
	}
	p.count(0, src.Size)
	return err
}

func (p *packer) count(bytes, sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
	p.sent += sent
}

// hashFile returns the hash of a file, which must have that size.
func hashFile(ctx context.Context, f *os.File, size int64) (string, error) {
	h := newChecked(reading{ctx, f}, "")
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(h, size+1), make([]byte, 128<<10))
	if err != nil && !errors.Is(err, errAltered) {
		return "", err
	}
	if n != size {
		return "", errChanged
	}
	return h.sum(), nil
}

// sendRepos puts packs of the commits that tasks name into the store.
func (p *packer) sendRepos(orders []*record.Order) ([]repo, error) {
	repos := make([]repo, len(p.places.repos))
	type commit struct{ source, id string }
	done := map[commit]bool{}
	for _, o := range orders {
		for _, r := range o.Repos {
			at := slices.Index(p.places.repos, r.Source)
			c := commit{r.Source, r.Commit}
			if at < 0 || done[c] {
				continue
			}
			done[c] = true
			if err := p.sendCommit(r.Source, r.Commit); err != nil {
				return nil, fmt.Errorf("repository %s: %w", r.Source, err)
			}
			repos[at].Commits = append(repos[at].Commits, r.Commit)
		}
	}
	return repos, nil
}

// sendCommit puts the pack of a commit into the store.
func (p *packer) sendCommit(source, id string) error {
	name := packName(id)
	if has, err := p.store.Has(p.ctx, name); err != nil || has {
		return err
	}
	f, err := os.CreateTemp("", "waza-pack-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	size, err := checkout.Pack(p.ctx, source, id, f, p.limits.FileBytes)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p.count(size, size)
	return p.store.Put(p.ctx, name, reading{p.ctx, f})
}

// each calls do for all items, some concurrently, until a call fails.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan T)
	for range min(atOnce, len(items)) {
		wg.Go(func() {
			for item := range next {
				if err := do(ctx, item); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, item := range items {
		select {
		case next <- item:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
