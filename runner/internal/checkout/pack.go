package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/files"
	"waza/runner/proc"
)

// Pack writes a commit with its history to w as a git pack, and returns its size. The id must
// come from [Resolve] for the same source. A size above limit is [files.ErrTooLarge]. After an
// error, the data in w is useless.
func Pack(ctx context.Context, source, id string, w io.Writer, limit int64) (size int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, makeTime, fmt.Errorf("git did not finish within %v", makeTime))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{w: w, left: limit, stop: stop}
	said, err := pipe(ctx, source, strings.NewReader(id+"\n"), out, "pack-objects", "--revs", "--stdout", "--quiet")
	if errors.Is(context.Cause(ctx), files.ErrTooLarge) {
		return 0, fmt.Errorf("commit %s with its history: %w: the limit is %s; list the files under inputs.files, or "+
			"use a repository with less history",
			quote(id), files.ErrTooLarge, files.Size(limit))
	}
	if err != nil {
		return 0, fault("git cannot pack "+quote(id)+" of "+source, said, err)
	}
	return limit - out.left, nil
}

// Unpack makes a bare repository from the output of [Pack], or adds it to a repository that
// Unpack made. Its HEAD is the commit. A pack without the commit is an error.
func Unpack(ctx context.Context, r io.Reader, id, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, makeTime, fmt.Errorf("git did not finish within %v", makeTime))
	defer cancel()
	format := "sha1"
	if len(id) == 64 {
		format = "sha256"
	}
	if _, said, err := git(ctx, filepath.Dir(dir), "init", "--quiet", "--bare", "--template=",
		"--object-format="+format, "--", dir); err != nil {
		return fault("git cannot create a repository for "+quote(id), said, err)
	}
	if said, err := pipe(ctx, dir, r, io.Discard, "index-pack", "--stdin"); err != nil {
		return fault("git cannot unpack "+quote(id), said, err)
	}
	if _, said, err := git(ctx, dir, "update-ref", "--no-deref", "HEAD", id+"^{commit}"); err != nil {
		return fault("the pack of "+quote(id)+" does not contain the commit", said, err)
	}
	return nil
}

// CopyHistory makes a bare repository that contains only a commit, its history, and the branches and
// tags of that history, so that checkouts of it do not reveal later commits and other branches of the
// source. The id must come from [Resolve] for the same source.
func CopyHistory(ctx context.Context, source, id, dir string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := Pack(ctx, source, id, w, math.MaxInt64)
		w.CloseWithError(err)
		packed <- err
	}()
	err := Unpack(ctx, r, id, dir)
	if err != nil {
		stop(err)
		r.CloseWithError(err)
	}
	if failed := <-packed; failed != nil && !errors.Is(failed, err) {
		return failed
	}
	if err != nil {
		return err
	}
	return copyNames(ctx, source, id, dir)
}

// maxNames limits the list of the branches and tags of a history, in bytes. Names beyond it are
// not copied.
const maxNames = 4 << 20

// copyNames copies the branches and tags that lead to a commit or its history. Tags become names of
// their commits.
func copyNames(ctx context.Context, source, id, dir string) error {
	listed := &proc.Limited{Max: maxNames}
	said, err := pipe(ctx, source, nil, listed, "for-each-ref", "--merged="+id,
		"--format=create %(refname) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)", "refs/heads", "refs/tags")
	if err != nil {
		return fault("git cannot list the branches of "+source, said, err)
	}
	names := listed.String()
	names = names[:strings.LastIndexByte(names, '\n')+1]
	if said, err = pipe(ctx, dir, strings.NewReader(names), io.Discard, "update-ref", "--stdin"); err != nil {
		return fault("git cannot copy the branches of "+source, said, err)
	}
	return nil
}

// Borrow lets the repository of a folder of a workspace borrow the objects of a source again. It does
// nothing if the agent removed the repository, or git is not in the usual place.
func Borrow(ctx context.Context, workspace *os.Root, source, folder string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, resolveTime, fmt.Errorf("git did not answer within %v", resolveTime))
	defer cancel()
	list := filepath.Join(folder, ".git", "objects", "info", "alternates")
	if info, err := workspace.Lstat(list); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	objects, said, err := git(ctx, source, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return fault("git cannot read "+source, said, err)
	}
	return workspace.WriteFile(list, []byte(objects+"\n"), 0o644)
}

// pipe runs git in a repository with the given input and output, and returns its standard error.
func pipe(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) (said string, err error) {
	stderr := &proc.Limited{Max: maxMessage}
	err = proc.Run(ctx, proc.Command{
		Args: append([]string{"git"}, args...), Dir: dir, Env: environ(), Stdin: in, Stdout: out, Stderr: stderr,
	})
	return strings.TrimSpace(stderr.String()), err
}

// bounded is a writer that returns an error beyond a number of bytes.
type bounded struct {
	w    io.Writer
	left int64
	stop context.CancelCauseFunc
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.stop(files.ErrTooLarge)
		return 0, files.ErrTooLarge
	}
	return b.w.Write(p)
}
