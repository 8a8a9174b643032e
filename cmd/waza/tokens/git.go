package tokens

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"waza/cmd/waza/exit"
	"waza/eval/files"
	"waza/runner/proc"
	"waza/runner/tokens"
)

// The limits of git's run time and output.
const (
	gitTimeout = time.Minute
	mostOutput = 64 << 20 // bytes
	mostNames  = 16 << 20 // bytes
)

// textsOf returns the wanted files of a revision below this directory, by their paths relative
// to it.
func textsOf(ctx context.Context, ref string, wanted func(name string) bool) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	commit, err := git(ctx, nil, 1<<10, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		if failed := (*proc.ExitError)(nil); errors.As(err, &failed) && failed.Code == 1 {
			return nil, exit.Usagef("git log --oneline lists revisions", "unknown git revision %q", ref)
		}
		return nil, err
	}
	names, err := git(ctx, nil, mostNames, "ls-tree", "-r", "-z", strings.TrimSpace(string(commit)))
	if err != nil {
		return nil, err
	}
	var paths, objects []string
	for entry := range strings.SplitSeq(string(names), "\x00") {
		// mode SP type SP object TAB path
		about, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(about)
		if len(fields) == 3 && fields[1] == "blob" && fields[0] != "120000" && wanted(name) {
			paths, objects = append(paths, name), append(objects, fields[2])
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	contents, err := git(ctx, strings.NewReader(strings.Join(objects, "\n")+"\n"), mostOutput, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return objectsOf(contents, paths)
}

// objectsOf parses the output of git cat-file --batch. Each file has a line with object, type
// and size, its bytes and a line break.
func objectsOf(contents []byte, paths []string) (map[string]string, error) {
	r := bufio.NewReader(bytes.NewReader(contents))
	found := map[string]string{}
	for _, path := range paths {
		head, err := r.ReadString('\n')
		var object, kind string
		var size int64
		if _, scanErr := fmt.Sscanf(head, "%s %s %d", &object, &kind, &size); err != nil || scanErr != nil {
			return nil, fmt.Errorf("git cat-file: unexpected line %q", strings.TrimSpace(head))
		}
		if err := files.CheckBytes(size, tokens.MaxBytes); err != nil {
			return nil, exit.Usagef("", "%s: %v", path, err)
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, fmt.Errorf("git cat-file: %s ends early", path)
		}
		found[path] = string(data[:size])
	}
	return found, nil
}

// git runs git here and returns its output, of at most limit bytes.
func git(ctx context.Context, stdin io.Reader, limit int, args ...string) ([]byte, error) {
	out, problem := &proc.Limited{Max: limit}, &proc.Limited{Max: 4 << 10}
	err := proc.Run(ctx, proc.Command{Args: append([]string{"git", "--no-pager"}, args...), Stdin: stdin, Stdout: out, Stderr: problem})
	missing := (*proc.NotFoundError)(nil)
	switch {
	case errors.As(err, &missing):
		return nil, exit.Usagef("install git", "waza tokens compare requires git: %v", err)
	case err != nil && len(problem.Bytes()) > 0:
		return nil, exit.New(exit.Usage, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(problem.String())), "")
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	case out.Dropped > 0:
		return nil, exit.Usagef("run the comparison in a subdirectory", "git %s printed more than %s", args[0], files.Size(int64(limit)))
	}
	return out.Bytes(), nil
}
