package readiness

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"waza/eval/files"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/tokens"
)

// Links are the links of the skill's Markdown files.
type Links struct {
	Valid  int  `json:"valid"`
	Total  int  `json:"total"`
	Passed bool `json:"passed"` // no link is faulty; orphans are allowed
	// Broken links lead nowhere, Directories to a folder, Escapes out of the skill, and Dead to
	// a URL that does not answer.
	Broken      []Link `json:"brokenLinks"`
	Directories []Link `json:"directoryLinks"`
	Escapes     []Link `json:"scopeEscapes"`
	Dead        []Link `json:"deadURLs"`
	// Orphans are files in references/ that neither SKILL.md nor a file that it leads to
	// mentions.
	Orphans []string `json:"orphanedFiles"`
}

// A Link is a faulty link.
type Link struct {
	Source string `json:"source"` // the file it is in, relative to the skill
	Line   int    `json:"line"`
	Target string `json:"target"`
	Reason string `json:"reason"`
}

func (l *Links) faults() int {
	return len(l.Broken) + len(l.Directories) + len(l.Escapes) + len(l.Dead)
}

// Limits of the checks.
const (
	mostLinkFiles = 1000
	mostLinks     = 20_000
	maxTarget     = 2000 // bytes
)

var (
	inlineLink    = text.Pattern(`\]\(\s*(<[^<>\n]*>|(?:[^\s()<>]|\([^\s()]*\))+)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`)
	referenceLink = text.Pattern(`^ {0,3}\[[^\]\n]+\]:\s*(<[^<>\n]*>|\S+)`)
	codeSpan      = text.Pattern("`[^`\n]*`")
)

// A checker checks the links of a skill.
type checker struct {
	dir   string
	links Links
	texts map[string]string // by path relative to dir
	leads map[string][]string
	urls  []Link
}

// linksOf checks the links of all Markdown files of a skill. It reads at most 1000 files.
func linksOf(s *skill.Skill, o Options) (*Links, error) {
	c := &checker{dir: s.Dir, texts: map[string]string{}, leads: map[string][]string{}}
	c.links = Links{Broken: []Link{}, Directories: []Link{}, Escapes: []Link{}, Dead: []Link{}, Orphans: []string{}}
	found, err := tokens.Find(s.Dir)
	if err != nil {
		return nil, err
	}
	for _, file := range found[:min(len(found), mostLinkFiles)] {
		rel, err := filepath.Rel(s.Dir, file)
		if err != nil {
			return nil, err
		}
		content, err := tokens.Read(file)
		if err != nil {
			return nil, err
		}
		name := filepath.ToSlash(rel)
		c.texts[name] = content
		c.checkFile(name, content)
	}
	c.checkURLs(o)
	c.findOrphans()
	l := c.links
	l.Valid = l.Total - l.faults()
	l.Passed = l.faults() == 0
	return &l, nil
}

// checkFile checks the links of one file.
func (c *checker) checkFile(name, content string) {
	skill.Prose(content, func(line int, s string) {
		s = codeSpan().ReplaceAllString(s, "")
		var targets []string
		for _, m := range inlineLink().FindAllStringSubmatch(s, -1) {
			targets = append(targets, m[1])
		}
		if m := referenceLink().FindStringSubmatch(s); m != nil {
			targets = append(targets, m[1])
		}
		for _, target := range targets {
			if c.links.Total < mostLinks {
				c.checkLink(Link{Source: name, Line: line, Target: strings.Trim(target, "<>")})
			}
		}
	})
}

func (c *checker) checkLink(l Link) {
	if l.Target == "" || l.Target[0] == '#' || len(l.Target) > maxTarget {
		return
	}
	if scheme, rest, ok := strings.Cut(l.Target, ":"); ok && len(scheme) > 1 && isScheme(scheme) {
		if strings.HasPrefix(rest, "//") && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
			c.links.Total++
			c.urls = append(c.urls, l)
		}
		return // mailto: and similar schemes
	}
	target := pathOf(l.Target)
	if target == "" || strings.HasPrefix(target, "//") {
		return // a query of the file itself, or another server
	}
	c.links.Total++
	rel := path.Join(path.Dir(l.Source), target)
	if path.IsAbs(target) || !filepath.IsLocal(filepath.FromSlash(rel)) && rel != "." {
		l.Reason = "it leads out of the skill, which users install alone"
		c.links.Escapes = append(c.links.Escapes, l)
		return
	}
	full := filepath.Join(c.dir, filepath.FromSlash(rel))
	info, err := os.Stat(full)
	switch {
	case err != nil:
		l.Reason = files.Reason(err)
		c.links.Broken = append(c.links.Broken, l)
	case info.IsDir():
		l.Reason = "it leads to a folder; link to a file"
		c.links.Directories = append(c.links.Directories, l)
	case !files.Within(c.dir, full):
		l.Reason = "a symbolic link leads out of the skill"
		c.links.Escapes = append(c.links.Escapes, l)
	default:
		c.leads[l.Source] = append(c.leads[l.Source], rel)
	}
}

func isScheme(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+.-", r))
	})
}

// pathOf returns the path of a relative link: without query and fragment, and with %20 and
// similar escapes decoded.
func pathOf(target string) string {
	target, _, _ = strings.Cut(target, "#")
	target, _, _ = strings.Cut(target, "?")
	var b strings.Builder
	for i := 0; i < len(target); i++ {
		if target[i] == '%' && i+2 < len(target) {
			if n, err := strconv.ParseUint(target[i+1:i+3], 16, 8); err == nil && n > 0 {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(target[i])
	}
	return b.String()
}

// checkURLs requests the URLs, each once.
func (c *checker) checkURLs(o Options) {
	if o.URLs == nil || len(c.urls) == 0 {
		return
	}
	var list []string
	for _, l := range c.urls {
		if u, _, _ := strings.Cut(l.Target, "#"); !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	why := o.URLs(list)
	for _, l := range c.urls {
		u, _, _ := strings.Cut(l.Target, "#")
		if l.Reason = why[u]; l.Reason != "" {
			c.links.Dead = append(c.links.Dead, l)
		}
	}
}

// findOrphans finds the files in references/ that SKILL.md does not lead to, directly or through
// other files. A file leads to another one by a link or by its name.
func (c *checker) findOrphans() {
	var candidates []string
	_ = filepath.WalkDir(filepath.Join(c.dir, "references"), func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && len(candidates) < mostLinkFiles {
			if rel, err := filepath.Rel(c.dir, name); err == nil {
				candidates = append(candidates, filepath.ToSlash(rel))
			}
		}
		return nil
	})
	reached := map[string]bool{}
	queue := []string{skill.FileName}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, file := range candidates {
			if !reached[file] && file != at && (slices.Contains(c.leads[at], file) || strings.Contains(c.texts[at], path.Base(file))) {
				reached[file] = true
				queue = append(queue, file)
			}
		}
		for _, file := range c.leads[at] {
			if !reached[file] {
				reached[file] = true
				queue = append(queue, file)
			}
		}
	}
	for _, file := range candidates {
		if !reached[file] {
			c.links.Orphans = append(c.links.Orphans, file)
		}
	}
}
