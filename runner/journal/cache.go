package journal

import (
	"io"
	"os"
	"path/filepath"
	"sync"

	"waza/eval/files"
)

// A Cache is a file of the state directory that can be written again. The first process that needs
// it writes it.
type Cache struct {
	store *Store
	path  string
}

// Cache returns the cache with a name.
func (s *Store) Cache(name string) *Cache { return &Cache{s, filepath.Join(s.dir, name)} }

// A CacheSealer authenticates the lines of a [Cache], so that nobody without the key of the state
// directory can add some. It is safe for concurrent use.
type CacheSealer struct{ signers *sync.Pool } // nil without a key

// Sealer returns a sealer of lines. Without a key, it accepts no line.
func (c *Cache) Sealer() CacheSealer {
	key, err := c.store.keys.load()
	if err != nil {
		return CacheSealer{}
	}
	// Lines depend on the trusted runs, because these determine the damage of a run.
	trusted := string(key.encode())
	return CacheSealer{&sync.Pool{New: func() any { return newSigner(key, trusted) }}}
}

// Seal returns a line, a JSON object with members, with its digest, a checksum and a newline; nil
// without a key.
func (c CacheSealer) Seal(line []byte) []byte {
	if c.signers == nil {
		return nil
	}
	s := c.signers.Get().(*signer)
	defer c.signers.Put(s)
	sealed, _ := s.sign(nil, line, tag{})
	return sealed
}

// Unseal returns the original of a sealed line, and whether it is authentic.
func (c CacheSealer) Unseal(line string) (body []byte, ok bool) {
	if c.signers == nil {
		return nil, false
	}
	s := c.signers.Get().(*signer)
	defer c.signers.Put(s)
	v := &verifier{signer: s}
	p := v.prove([]byte(line))
	if !p.sealed || p.damage != nil {
		return nil, false
	}
	body, _, err := v.follow(&p, tag{}, true)
	return body, err == nil
}

// Read returns the content, which may be anything; nil when the file does not exist.
func (c *Cache) Read() []byte {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return nil
	}
	return b
}

// Write replaces the file. Concurrent readers get the old or the new file. After a power failure it
// may contain anything.
func (c *Cache) Write(data []byte) error {
	if c.store.sees != nil {
		return nil // the file covers all runs
	}
	return StateError(files.WriteWhole(c.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, nil))
}
