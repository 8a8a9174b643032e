package reach

// Beside is embedded in the options of graders that name files, with the tag `yaml:"-"`. It also
// finds files beside the task file that declares the grader. The zero value is for a grader of
// the suite.
type Beside struct {
	// BesideDir is the absolute path of the task file's directory; empty for a grader of the
	// suite. It is encoded with the grader, because it is not one of the options.
	BesideDir string `yaml:"-" json:"-" path:"file"`
}

// DeclaredIn sets the directory of the task file.
func (b *Beside) DeclaredIn(dir string) { b.BesideDir = dir }

// DeclaredBeside returns the directory that [Beside.DeclaredIn] set.
func (b Beside) DeclaredBeside() string { return b.BesideDir }

// A Resolver is a suite, or its [Places].
type Resolver interface {
	Resolve(rel, beside string) (abs string, tried []string, ok bool)
}

// Resolve finds a regular file by a relative path from the options. It looks in the suite's
// directory, then in its repository's root (the nearest directory above with a .git), then
// beside the task file, then in the current directory. It returns the file's absolute path and
// all paths that it tried. It uses an absolute path unchanged.
func (b Beside) Resolve(s Resolver, rel string) (abs string, tried []string, ok bool) {
	return s.Resolve(rel, b.BesideDir)
}
