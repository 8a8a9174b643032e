package files

import (
	"context"
	"fmt"
	"io"
	"os"
)

// ReadAll returns all of an open file. It returns [ErrTooLarge] for a file of more than limit
// bytes: before the first byte if the size shows it, or later if the file grows meanwhile.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	if err := checkSize(f, limit); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: the limit is %s", ErrTooLarge, Size(limit))
	}
	return data, err
}

// checkSize returns [ErrTooLarge] if an open file has more than limit bytes.
func checkSize(f *os.File, limit int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return CheckBytes(info.Size(), limit)
}

// CheckBytes returns [ErrTooLarge] if size exceeds limit.
func CheckBytes(size, limit int64) error {
	if size > limit {
		return fmt.Errorf("%w: %d bytes, the limit is %s", ErrTooLarge, size, Size(limit))
	}
	return nil
}

// Copy writes all of an open file to w, in pieces. It returns the cause of ctx when ctx ends,
// and [ErrTooLarge] when the file has more than limit bytes: before the first byte if the size
// shows it, else after limit bytes.
func Copy(ctx context.Context, w io.Writer, f *os.File, limit int64) error {
	if err := checkSize(f, limit); err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, &reader{ctx, io.LimitReader(f, limit+1)}, make([]byte, 128<<10))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: the limit is %s", ErrTooLarge, Size(limit))
	}
	return err
}

// CopyTo writes all of an open file, with its permissions, to a file below a root. The owner can
// always read and write the new file. See [Copy].
func CopyTo(ctx context.Context, to *os.Root, name string, f *os.File, limit int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := CheckBytes(info.Size(), limit); err != nil {
		return err
	}
	dst, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	err = Copy(ctx, dst, f, limit)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	return err
}

// reader reads from r until ctx ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}

// Size formats a limit for people: 8 MiB, 1 GiB. A number that is not a multiple of a unit is
// formatted in bytes.
func Size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
