package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox"
)

// Views as mounts. Each case shows those below its directory, DIR, which has the files of files.
func TestMounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  []string
		links  map[string]string // targets by links
		policy sandbox.Policy
		view   sandbox.View
		want   string
	}{
		"private home and workspace": {
			files: []string{"home/.ssh/id", "trial/a"},
			view:  sandbox.View{Write: []string{"DIR/trial"}},
			want: `empty DIR/home, writable
bind DIR/trial, writable`,
		},
		"shared home without keys": {
			files:  []string{"home/.ssh/id", "home/.netrc", "home/notes"},
			policy: sandbox.Policy{HomeShared: true},
			want: `bind DIR/home
bind DIR/home/.netrc from /dev/null
empty DIR/home/.ssh`,
		},
		"shared home with keys that the suite names": {
			files:  []string{"home/.ssh/id"},
			policy: sandbox.Policy{HomeShared: true, Read: []string{"DIR/home/.ssh"}},
			want: `bind DIR/home
bind DIR/home/.ssh`,
		},
		"tools below the home directory": {
			files: []string{"home/.nvm/versions/node/v1/bin/node", "home/.local/bin/a", "home/.local/share/keyrings/k", "home/.cargo/bin/b", "home/.cargo/credentials.toml", "home/.ssh/bin/c", "home/tool/d", "home/.config/x/bin/e"},
			view:  sandbox.View{Env: []string{"HOME=DIR/home", "PATH=DIR/home/.nvm/versions/node/v1/bin:DIR/home/.local/bin:DIR/home/.cargo/bin:DIR/home/.ssh/bin:DIR/home/tool:DIR/home/.config/x/bin:DIR/home"}},
			want: `empty DIR/home, writable
bind DIR/home/.cargo
bind DIR/home/.nvm
bind DIR/home/tool
bind DIR/home/.cargo/credentials.toml from /dev/null
bind DIR/home/.local/bin
bind DIR/home/.local/lib
bind DIR/home/.ssh/bin
bind DIR/home/.config/x/bin
bind DIR/home/.local/share/fnm
bind DIR/home/.local/share/mise
bind DIR/home/.local/share/pipx
bind DIR/home/.local/share/uv`,
		},
		"programs of packages of node": {
			files:  []string{"home/.cache/a/node_modules/.bin/tool", "suite/node_modules/.bin/tool"},
			policy: sandbox.Policy{Hidden: []string{"DIR/suite"}},
			view:   sandbox.View{Env: []string{"HOME=DIR/home", "PATH=DIR/home/.cache/a/node_modules/.bin:DIR/suite/node_modules/.bin"}},
			want: `empty DIR/home, writable
bind DIR/suite/node_modules
bind DIR/home/.cache/a/node_modules`,
		},
		"programs beside the suite": {
			files:  []string{"suite/bin/tool", "suite/answers"},
			policy: sandbox.Policy{Hidden: []string{"DIR/suite"}},
			view:   sandbox.View{Env: []string{"PATH=DIR/suite/bin:DIR/suite"}},
			want:   `bind DIR/suite/bin`,
		},
		"hidden directories in visible ones": {
			files:  []string{"data/suite/answers", "data/suite/fixtures/a", "data/state/work/1/a"},
			policy: sandbox.Policy{Read: []string{"DIR/data"}, Hidden: []string{"DIR/data/suite", "DIR/data/state"}},
			view:   sandbox.View{Write: []string{"DIR/data/state/work/1"}, Read: []string{"DIR/data/suite/fixtures"}},
			want: `bind DIR/data
empty DIR/home, writable
empty DIR/data/state
empty DIR/data/suite
bind DIR/data/suite/fixtures
bind DIR/data/state/work/1, writable`,
		},
		"a suite in a skill": {
			files:  []string{"skill/SKILL.md", "skill/evals/answers", "skill/evals/agent.sh"},
			policy: sandbox.Policy{Hidden: []string{"DIR/skill/evals"}},
			view:   sandbox.View{Read: []string{"DIR/skill", "DIR/skill/evals/agent.sh"}},
			want: `empty DIR/home, writable
bind DIR/skill
empty DIR/skill/evals
bind DIR/skill/evals/agent.sh`,
		},
		"a suite beside SKILL.md": {
			files:  []string{"skill/SKILL.md", "skill/eval.yaml"},
			policy: sandbox.Policy{Hidden: []string{"DIR/skill/eval.yaml", "DIR/skill"}},
			view:   sandbox.View{Read: []string{"DIR/skill"}},
			want: `empty DIR/home, writable
bind DIR/skill
bind DIR/skill/eval.yaml from /dev/null`,
		},
		"the view of a grader": {
			files:  []string{"data/suite/answers", "trial/a"},
			policy: sandbox.Policy{Hidden: []string{"DIR/data/suite"}},
			view:   sandbox.View{Read: []string{"DIR/data/suite"}, Copy: []string{"DIR/trial"}, Suite: true},
			want: `empty DIR/home, writable
overlay DIR/trial, writable
bind DIR/data/suite`,
		},
		"home in the workspace": {
			files: []string{"trial/a"},
			view:  sandbox.View{Env: []string{"HOME=DIR/trial/home"}, Write: []string{"DIR/trial"}},
			want:  `bind DIR/trial, writable`,
		},
		"logins": {
			files: []string{"home/.claude/key"},
			view:  sandbox.View{Env: []string{"HOME=DIR/home"}, Logins: []string{"DIR/home/.claude"}},
			want: `empty DIR/home, writable
bind DIR/home/.claude, writable`,
		},
		"personal settings": {
			files:  []string{"home/.claude/key", "home/.claude/CLAUDE.md", "home/.claude/skills/x/SKILL.md", "home/.claude/agents/a"},
			policy: sandbox.Policy{Read: []string{"DIR/home/.claude/agents"}},
			view: sandbox.View{
				Env: []string{"HOME=DIR/home"}, Logins: []string{"DIR/home/.claude"},
				Personal: []string{"DIR/home/.claude/CLAUDE.md", "DIR/home/.claude/skills", "DIR/home/.claude/agents", "DIR/home/.claude/none"},
			},
			want: `empty DIR/home, writable
bind DIR/home/.claude, writable
bind DIR/home/.claude/CLAUDE.md from /dev/null
bind DIR/home/.claude/agents
empty DIR/home/.claude/skills, writable`,
		},
		"linked personal settings": { // those in the dotfiles are not visible
			files: []string{"dotfiles/skills/a", "visible/CLAUDE.md", "home/.claude/key"},
			links: map[string]string{"home/.claude/skills": "dotfiles/skills", "home/.claude/CLAUDE.md": "visible/CLAUDE.md", "home/.claude/gone": "none"},
			view: sandbox.View{
				Env: []string{"HOME=DIR/home"}, Logins: []string{"DIR/home/.claude"}, Read: []string{"DIR/visible"},
				Personal: []string{"DIR/home/.claude/CLAUDE.md", "DIR/home/.claude/skills", "DIR/home/.claude/gone"},
			},
			want: `empty DIR/home, writable
bind DIR/visible
bind DIR/home/.claude, writable
bind DIR/visible/CLAUDE.md from /dev/null`,
		},
		"a linked login": {
			files: []string{"dotfiles/skills/a", "home/x"}, links: map[string]string{"home/.claude": "dotfiles"},
			view: sandbox.View{
				Env: []string{"HOME=DIR/home"}, Logins: []string{"DIR/home/.claude"}, Personal: []string{"DIR/home/.claude/skills"},
			},
			want: `empty DIR/home, writable
bind DIR/home/.claude, writable
empty DIR/home/.claude/skills, writable`,
		},
		"personal settings of a shared home": {
			files: []string{"home/.claude/CLAUDE.md"}, policy: sandbox.Policy{HomeShared: true},
			view: sandbox.View{
				Env: []string{"HOME=DIR/home"}, Logins: []string{"DIR/home/.claude"}, Personal: []string{"DIR/home/.claude/CLAUDE.md"},
			},
			want: `bind DIR/home
bind DIR/home/.claude, writable`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, f := range c.files {
				write(t, "", dir, f)
			}
			for link, target := range c.links {
				require.NoError(t, os.Symlink(filepath.Join(dir, target), filepath.Join(dir, link)))
			}
			placed := func(list []string) []string {
				var l []string
				for _, s := range list {
					l = append(l, strings.ReplaceAll(s, "DIR", dir))
				}
				return l
			}
			for _, list := range []*[]string{&c.policy.Read, &c.policy.Write, &c.policy.Hidden, &c.view.Logins, &c.view.Personal, &c.view.Env, &c.view.Read, &c.view.Write, &c.view.Copy} {
				*list = placed(*list)
			}
			if c.view.Env == nil {
				c.view.Env = []string{"HOME=" + dir + "/home"}
			}
			var got []string
			for _, line := range c.policy.Mounts("/bin/sh", c.view) {
				if strings.Contains(line, dir) {
					got = append(got, strings.ReplaceAll(line, dir, "DIR"))
				}
			}
			require.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}

// A mount follows those that contain it, and the system is read-only.
func TestMountsOfTheSystem(t *testing.T) {
	t.Parallel()
	list := (&sandbox.Policy{}).Mounts("/bin/sh", sandbox.View{Env: []string{"HOME=/root", "PATH=/usr/bin:/root/bin:relative::/"}})
	for _, line := range list {
		kind, rest, _ := strings.Cut(line, " ")
		target, _, _ := strings.Cut(rest, ",")
		if kind == "bind" && !strings.HasPrefix(target, "/dev/") {
			require.NotContains(t, line, "writable")
		}
	}
	require.Contains(t, list, "bind /usr")
	require.Contains(t, list, "proc /proc")
	require.Contains(t, list, "empty /tmp, writable")
	require.Less(t, slices.Index(list, "devices /dev"), slices.Index(list, "bind /dev/null, writable"))
}

// The profile of sandbox-exec denies first and allows then, because later rules win.
func TestProfile(t *testing.T) {
	t.Parallel()
	p := sandbox.Policy{
		Read: []string{"/opt/models"}, Write: []string{"/data"}, Hidden: []string{"/homes/a/suite"},
		Isolated: true,
	}
	got := p.Profile("/homes/a/tools/bin/agent", sandbox.View{
		Env: []string{"HOME=/homes/a", "PATH=/usr/bin:/homes/a/tools/bin"}, Write: []string{`/homes/a/w "1"\`},
		Logins: []string{"/homes/a/.claude"},
	})
	head, _, _ := strings.Cut(got, `(deny file-read* (subpath "/homes/a/.ssh"))`)
	require.Equal(t, `(version 1)
(allow default)
(deny file-write*)
(deny file-read* (subpath "/Users"))
(allow file-read-metadata)
`, head)
	_, tail, _ := strings.Cut(got, `(deny file-read* (subpath "/homes/a/.password-store"))`+"\n")
	require.Equal(t, `(allow file-read* (subpath "/usr"))
(allow file-read* (subpath "/homes/a/tools"))
(deny file-read* (subpath "/homes/a/suite"))
(allow file-read* (subpath "/homes/a/tools/bin/agent"))
(allow file-read* (subpath "/opt/models"))
(allow file-read* file-write* (subpath "/homes/a/.claude"))
(allow file-read* file-write* (subpath "/data"))
(allow file-read* file-write* (subpath "/homes/a/w \"1\"\\"))
(allow file-read* file-write* (subpath "/private/tmp"))
(allow file-read* file-write* (subpath "/private/var/tmp"))
(allow file-read* file-write* (subpath "/private/var/folders"))
(allow file-read* file-write* (subpath "/dev"))
(deny signal (target others))
(deny network*)
(allow network* (local ip "localhost:*"))
`, tail)
	_, skill, _ := strings.Cut(p.Profile("/bin/sh", sandbox.View{Read: []string{"/homes/a", "/homes/a/suite/agent.sh"}}), `(allow file-read* (subpath "/homes/a/suite/agent.sh"))`+"\n")
	require.True(t, strings.HasPrefix(skill, `(deny file-read* (subpath "/homes/a/suite"))
(allow file-read* (subpath "/homes/a/suite/agent.sh"))
`), "the suite in a skill: %s", skill)
	require.Contains(t, p.Profile("/bin/sh", sandbox.View{Suite: true}), "(version 1)")
	require.NotContains(t, p.Profile("/bin/sh", sandbox.View{Suite: true}), filepath.Join("/homes/a", "suite"))
}
