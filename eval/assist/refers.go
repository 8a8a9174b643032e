package assist

// refers is the type of thing that the value of a key names. It is the keyword x-refers of the
// schema, which comes from a tag of the field.
type refers string

const (
	toTaskFiles refers = "task-files"          // patterns of task files, relative to the suite
	toDataset   refers = "dataset"             // a file, relative to the suite
	toFile      refers = "suite-file"          // a file, relative to the suite, its repository or the current directory
	toProgram   refers = "program"             // the same, or a program on PATH
	toDirectory refers = "suite-directory"     // a directory, relative to the suite
	toNeighbour refers = "task-file-neighbour" // a file, relative to the task file
	toFixture   refers = "fixture"             // a file, relative to the task's fixture directory
	toSnapshot  refers = "snapshot"            // a file, relative to the grader's context_dir, else like fixture or suite-file
	toSkill     refers = "skill"               // a skill, by name
	toClient    refers = "client"              // a client that receives messages, by name
	toGrader    refers = "grader"              // a grader of the suite, by name or type
	toNamesake  refers = "grader-name"         // the name of a grader; in a task it can be the name of one of the suite's graders
	toTaskID    refers = "task-id"             // the task's own id
	toAgent     refers = "agent"               // an agent, by name
)

// isFile reports whether the value names one file or directory.
func (r refers) isFile() bool {
	switch r {
	case toDataset, toFile, toProgram, toDirectory, toNeighbour, toFixture, toSnapshot:
		return true
	}
	return false
}

// mayBeElse reports whether a value that names no file can be valid: as a text, or as a program.
func (r refers) mayBeElse() bool { return r == toProgram }

// refersTo returns what a scalar names, "" if nothing.
func refersTo(views []view) refers {
	for _, v := range views {
		if v.refers != "" && !v.isObject() {
			return v.refers
		}
	}
	return ""
}
