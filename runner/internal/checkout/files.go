package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/runner/proc"
)

// Files is like [Make], but leaves only the files of the commit in dir: no repository, and so neither
// its history nor its other branches. The files have the line ends that the source's settings ask for.
//
// git filters, such as those of git-crypt and LFS, are programs. Those that only the settings of the
// source name do not run. If a file at or below one of the paths needs one, the error names it. The
// paths are relative to the top of the repository.
func Files(ctx context.Context, source, id, dir string, paths ...string) error {
	var settings []string
	for _, key := range []string{"core.autocrlf", "core.eol"} {
		value, err := setting(ctx, source, key)
		if err != nil {
			return err
		}
		if value != "" {
			settings = append(settings, key+"="+value)
		}
	}
	if err := makeWith(ctx, source, id, dir, settings); err != nil {
		return err
	}
	if err := checkFilters(ctx, source, id, dir, paths); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, ".git"))
}

// setting returns the value of a setting of git in a directory; "" if it is not set.
func setting(ctx context.Context, dir, key string) (string, error) {
	value, said, err := git(ctx, dir, "config", "--get", key)
	var exit *proc.ExitError
	switch {
	case errors.As(err, &exit) && said == "":
		return "", nil
	case err != nil:
		return "", fault("the setting "+key+" of "+dir, said, err)
	}
	return value, nil
}

// maxListed limits the bytes of a list of files and their attributes.
const maxListed = 64 << 20

// checkFilters returns an error if files need a filter that the settings of the source define in another
// way than those of the checkout.
func checkFilters(ctx context.Context, source, id, dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	listed, err := list(ctx, dir, "", append([]string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", id, "--"}, paths...)...)
	if err != nil || listed == "" {
		return err
	}
	attributes, err := list(ctx, dir, listed, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for triple := range slices.Chunk(strings.Split(attributes, "\x00"), 3) {
		if len(triple) < 3 {
			continue
		}
		file, filter := triple[0], triple[2]
		if filter == "unspecified" || filter == "unset" || filter == "set" || known[filter] {
			continue
		}
		known[filter] = true
		for _, key := range []string{"smudge", "process"} {
			key = "filter." + filter + "." + key
			there, err := setting(ctx, source, key)
			if err != nil {
				return err
			}
			here, err := setting(ctx, dir, key)
			if err != nil {
				return err
			}
			if there != here {
				return fmt.Errorf("%s needs the git filter %s, which only the settings of the repository %s define, and waza starts no programs "+
					"that a repository names; define it with git config --global", file, quote(filter), source)
			}
		}
	}
	return nil
}

// list runs git in a checkout, and returns its output.
func list(ctx context.Context, dir, in string, args ...string) (string, error) {
	out := &proc.Limited{Max: maxListed}
	said, err := pipe(ctx, dir, strings.NewReader(in), out, args...)
	switch {
	case err != nil:
		return "", fault("git cannot list the files of "+dir, said, err)
	case out.Dropped > 0:
		return "", fmt.Errorf("the list of files of %s is longer than %d bytes", dir, maxListed)
	}
	return out.String(), nil
}
