package decode

// A Code names a type of finding. Codes are part of the program's interface: editors can filter
// by them, so their meaning never changes.
type Code string

// The codes of all findings. [Codes] returns them with a sentence each.
const (
	// Files.
	CodeMissingFile  Code = "missing-file"
	CodeUnreadable   Code = "unreadable-file"
	CodeTooLarge     Code = "too-large"
	CodeNotText      Code = "not-text"
	CodeEscapingPath Code = "escaping-path"

	CodeAmbiguousPath Code = "ambiguous-path"

	// YAML.
	CodeSyntax            Code = "syntax"
	CodeTooDeep           Code = "too-deep"
	CodeTooManyAliases    Code = "too-many-aliases"
	CodeDuplicateKey      Code = "duplicate-key"
	CodeMultipleDocuments Code = "multiple-documents"
	CodeEmpty             Code = "empty-document"

	// Keys and values.
	CodeUnknownKey    Code = "unknown-key"
	CodeWrongType     Code = "wrong-type"
	CodeInvalidValue  Code = "invalid-value"
	CodeMissingField  Code = "missing-field"
	CodeDeprecated    Code = "deprecated"
	CodeNoEffect      Code = "no-effect"
	CodeOtherDialect  Code = "other-dialect"
	CodeOtherMeaning  Code = "other-meaning"
	CodeSchemaVersion Code = "schema-version"

	// Executors and graders.
	CodeUnknownExecutor Code = "unknown-executor"
	CodeUnknownGrader   Code = "unknown-grader"
	CodeUnknownOption   Code = "unknown-option"
	CodeDuplicateGrader Code = "duplicate-grader"
	CodeBadRegex        Code = "bad-regex"
	CodeBadAssertion    Code = "bad-assertion"
	CodeBadSchema       Code = "bad-schema"
	CodeChecksNothing   Code = "checks-nothing"
	CodeNothingChecked  Code = "nothing-checked"
	CodeUnavailable     Code = "unavailable"
	CodeFleet           Code = "fleet"
	CodeExposed         Code = "exposed-suite"

	CodeUnmeasuredMetric Code = "unmeasured-metric"

	// Tasks and skills.
	CodeNoTasks            Code = "no-tasks"
	CodeBadGlob            Code = "bad-glob"
	CodeGlobMatchesNothing Code = "glob-matches-nothing"
	CodeDuplicateID        Code = "duplicate-id"
	CodeMissingPrompt      Code = "missing-prompt"
	CodeMissingFixture     Code = "missing-fixture"
	CodeMissingSkill       Code = "missing-skill"
	CodeBadSkill           Code = "bad-skill"
	CodeUnknownVariable    Code = "unknown-variable"

	// Datasets.
	CodeDatasetSyntax   Code = "dataset-syntax"
	CodeDatasetColumns  Code = "dataset-columns"
	CodeDatasetNoPrompt Code = "dataset-no-prompt"
	CodeDatasetEmpty    Code = "dataset-empty"
	CodeDatasetRange    Code = "dataset-range"
)

// A CodeDoc is a code with a sentence that describes when waza reports it.
type CodeDoc struct {
	Code Code
	Doc  string
}

// Codes returns every code with its sentence, in the order of the reference document. The caller
// owns the slice.
func Codes() []CodeDoc {
	return []CodeDoc{
		{CodeMissingFile, "A file that the suite names does not exist."},
		{CodeUnreadable, "A file or directory exists but cannot be read, or is not a regular file."},
		{CodeTooLarge, "A file, a text or a list is too large."},
		{CodeNotText, "A file contains control characters or bytes that are not UTF-8 text."},
		{CodeEscapingPath, "A path is absolute, or leads out of the directory that must contain it."},
		{
			CodeAmbiguousPath,
			"A path in a task file leads to different files beside the suite and beside the task; the finding names the one that is used.",
		},

		{CodeSyntax, "A file is not valid YAML."},
		{CodeTooDeep, "Lists and maps are nested too deeply, or an alias contains itself."},
		{CodeTooManyAliases, "Aliases expand the document to more nodes than waza reads."},
		{CodeDuplicateKey, "A map contains a key twice."},
		{CodeMultipleDocuments, "A file contains several YAML documents; waza reads only the first."},
		{CodeEmpty, "A file is empty."},

		{CodeUnknownKey, "A key is unknown and has no effect. It is an error if the key is a known one with a typing error."},
		{CodeWrongType, "A value does not have the type of its key."},
		{CodeInvalidValue, "A value has the right type but is not allowed."},
		{CodeMissingField, "A required key is absent or empty."},
		{CodeDeprecated, "A key has an older spelling, which still works."},
		{CodeNoEffect, "A setting is valid but has no effect in this place."},
		{CodeOtherDialect, "The file is for another tool that uses the same file name."},
		{CodeOtherMeaning, "A key or value has a different meaning in microsoft/waza, which reads the same suites."},
		{CodeSchemaVersion, "The version of the suite format is invalid, or waza does not support it."},

		{CodeUnknownExecutor, "No executor has this name."},
		{CodeUnknownGrader, "No grader has this type."},
		{
			CodeUnknownOption,
			"The grader has no such option; the key has no effect. It is an error if the key is a known option with a typing error.",
		},
		{CodeDuplicateGrader, "Two graders of one list have the same name; waza renames the later one."},
		{CodeBadRegex, "A regular expression does not compile (RE2 syntax)."},
		{CodeBadAssertion, "An assertion has a syntax error."},
		{CodeBadSchema, "A JSON Schema is not valid."},
		{CodeChecksNothing, "A grader, an expectation or a file of trigger tests contains nothing to check."},
		{CodeNothingChecked, "A task has neither graders nor expectations, so all its trials pass."},
		{CodeUnavailable, "A program or setting that a grader or executor needs is missing."},
		{CodeFleet, "A part of the suite does not work, or works differently, when the workers of a fleet execute the trials."},
		{CodeExposed, "A setting lets agents read or change files of the suite, such as expected answers and graders."},
		{
			CodeUnmeasuredMetric,
			"A metric has a threshold but nothing in the suite measures it, so it never fails a run; use `waza run " +
				"--fail-on unmeasured` to make it fail.",
		},

		{CodeNoTasks, "The suite has no task to run."},
		{CodeBadGlob, "A file pattern is malformed."},
		{CodeGlobMatchesNothing, "A file pattern matches no file."},
		{CodeDuplicateID, "Two tasks have the same id."},
		{CodeMissingPrompt, "A task has no prompt (an error) or an empty one (a warning)."},
		{CodeMissingFixture, "A file that a task needs in its workspace is not in the fixture directory."},
		{
			CodeMissingSkill,
			"A skill, an agent or a skill directory that the suite names is missing. It is an error if an executor of " +
				"the suite passes skills to agents, or if other skills were found.",
		},
		{CodeBadSkill, "The frontmatter of a SKILL.md or .agent.md cannot be parsed, so agents cannot read the file."},
		{CodeUnknownVariable, "A text uses an unknown template variable, which stays in the text unchanged."},

		{CodeDatasetSyntax, "A dataset is not valid CSV or JSONL."},
		{CodeDatasetColumns, "A dataset's header cannot be used, or a row has more or fewer fields than the header."},
		{CodeDatasetNoPrompt, "A dataset has no prompt column (an error) or a row with an empty prompt (a warning)."},
		{CodeDatasetEmpty, "A dataset has no rows."},
		{CodeDatasetRange, "A range of rows is invalid or extends beyond the dataset."},
	}
}
