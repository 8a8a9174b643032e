package checkout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/eval/text"
)

// fetchTime limits the fetch of a repository from another machine.
const fetchTime = 20 * time.Minute

// address matches an address of a repository that git can fetch without a program that the address names:
// https://, http://, ssh://, git:// and file:// addresses, and user@host:path.
var address = text.Pattern(`^((https?|ssh|git|file)://[^\s]+|[\w.-]+@[\w.-]+:[^\s]+)$`)

// Hidden returns an address without its user and password, for messages.
func Hidden(url string) string { return login().ReplaceAllString(url, "://***@") }

var login = text.Pattern(`://[^/@\s]*@`)

// Fetch checks a commit of the repository at an address out into dir, which must be empty or not exist, and
// returns the id of the commit. name is an id, a branch or a tag; empty means HEAD. git fetches no history if
// the server permits that, no submodules and no hooks, and asks for no password. On an error, dir can contain a
// part of the repository.
func Fetch(ctx context.Context, url, name, dir string) (id string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, fmt.Errorf("git did not finish within %v", fetchTime))
	defer cancel()
	if !address().MatchString(url) {
		return "", fmt.Errorf("%q is no address of a repository, such as https://HOST/PATH.git", text.Clip(Hidden(url), 200))
	}
	if name == "" || strings.EqualFold(name, "head") {
		name = "HEAD"
	}
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, ":+^~ \n") {
		return "", fmt.Errorf("%s is no commit id, branch or tag", quote(name))
	}
	safe := []string{"-C", dir, "-c", "protocol.allow=never"}
	for _, p := range []string{"https", "http", "ssh", "git", "file"} {
		safe = append(safe, "-c", "protocol."+p+".allow=always")
	}
	fetch := slices.Concat(safe, []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"})
	run := func(args ...string) error {
		_, said, err := git(ctx, ".", args...)
		if err != nil {
			return fault("git cannot fetch "+quote(name)+" of "+text.Clip(Hidden(url), 200), Hidden(said), err)
		}
		return nil
	}
	if err := run("init", "--quiet", "--template=", "--", dir); err != nil {
		return "", err
	}
	// Not every server gives a commit by its id. Then all branches and tags can contain it.
	if one := run(append(fetch, "--depth=1", "--", url, "+"+name+":refs/waza/fetched")...); one == nil {
		name = "refs/waza/fetched"
	} else if err := run(append(fetch, "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")...); err != nil {
		return "", err
	}
	if id, err = Resolve(ctx, dir, name); err != nil {
		return "", fmt.Errorf("%s has no commit %s", text.Clip(Hidden(url), 200), quote(name))
	}
	return id, run("-C", dir, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", "--force", id, "--")
}
