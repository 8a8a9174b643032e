package decode

// Code names a sort of finding. Codes are part of the program's interface: an
// editor may filter by them, so they never change their meaning.
type Code string

// The codes of all findings. [Codes] gives each with its sentence.
const (
	// Files.
	CodeMissingFile  Code = "missing-file"
	CodeUnreadable   Code = "unreadable-file"
	CodeTooLarge     Code = "too-large"
	CodeNotText      Code = "not-text"
	CodeEscapingPath Code = "escaping-path"

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

	CodeUnmeasuredMetric Code = "unmeasured-metric"

	// Tasks and skills.
	CodeNoTasks            Code = "no-tasks"
	CodeBadGlob            Code = "bad-glob"
	CodeGlobMatchesNothing Code = "glob-matches-nothing"
	CodeDuplicateID        Code = "duplicate-id"
	CodeMissingPrompt      Code = "missing-prompt"
	CodeMissingFixture     Code = "missing-fixture"
	CodeMissingSkill       Code = "missing-skill"
	CodeUnknownVariable    Code = "unknown-variable"

	// Datasets.
	CodeDatasetSyntax   Code = "dataset-syntax"
	CodeDatasetColumns  Code = "dataset-columns"
	CodeDatasetNoPrompt Code = "dataset-no-prompt"
	CodeDatasetEmpty    Code = "dataset-empty"
	CodeDatasetRange    Code = "dataset-range"
)

// CodeDoc is a code with one sentence that tells when it is reported.
type CodeDoc struct {
	Code Code
	Doc  string
}

// Codes returns every code with its sentence, in the order of the reference
// document. The caller owns the slice.
func Codes() []CodeDoc {
	return []CodeDoc{
		{CodeMissingFile, "A file that the suite names is not there."},
		{CodeUnreadable, "A file or directory is there but cannot be read, or is not a regular file."},
		{CodeTooLarge, "A file has more bytes or rows than waza reads."},
		{CodeNotText, "A file holds bytes that are not UTF-8 text, or control characters."},
		{CodeEscapingPath, "A path is absolute or leads out of the directory that it must stay in."},

		{CodeSyntax, "A file is not valid YAML."},
		{CodeTooDeep, "Lists and maps are nested deeper than waza reads, or an alias holds itself."},
		{CodeTooManyAliases, "Aliases multiply the document beyond what waza reads."},
		{CodeDuplicateKey, "A key stands twice in one map."},
		{CodeMultipleDocuments, "A file holds several YAML documents, of which only the first is read."},
		{CodeEmpty, "A file holds nothing."},

		{CodeUnknownKey, "A key is not known here, and has no effect."},
		{CodeWrongType, "A value is of another type than its key takes."},
		{CodeInvalidValue, "A value is of the right type but not one that its key takes."},
		{CodeMissingField, "A required key is absent or empty."},
		{CodeDeprecated, "A spelling of an older generation of the format, which still works."},
		{CodeNoEffect, "A setting is understood but changes nothing where it stands."},
		{CodeOtherDialect, "The file is written for another tool that uses the same file name."},
		{CodeSchemaVersion, "The suite asks for a major version of the format that waza does not know."},

		{CodeUnknownExecutor, "No executor has this name."},
		{CodeUnknownGrader, "No grader has this type."},
		{CodeUnknownOption, "The grader does not take this option, which has no effect."},
		{CodeDuplicateGrader, "Two graders of one list have the same name; the later one is renamed."},
		{CodeBadRegex, "A regular expression does not compile (RE2 syntax)."},
		{CodeBadAssertion, "An assertion has a syntax error."},
		{CodeBadSchema, "A JSON Schema is not valid."},
		{CodeChecksNothing, "A grader's options leave it nothing to check."},
		{CodeNothingChecked, "A task has neither graders nor expectations, so every trial of it passes."},
		{CodeUnavailable, "Something that a grader or executor needs is not installed or not set."},
		{CodeUnmeasuredMetric, "A metric has a threshold, and nothing in the suite measures it, so it never fails; `waza run --fail-on unmeasured` makes it fail."},

		{CodeNoTasks, "The suite has no task to run."},
		{CodeBadGlob, "A pattern of files is malformed."},
		{CodeGlobMatchesNothing, "A pattern of files matches no file."},
		{CodeDuplicateID, "Two tasks have the same id."},
		{CodeMissingPrompt, "A task has no prompt, which is an error, or an empty one, which is a warning."},
		{CodeMissingFixture, "A file that a task puts into the workspace is not in the fixture directory."},
		{CodeMissingSkill, "A required skill is not found, or a skill directory is not there."},
		{CodeUnknownVariable, "A text uses a template variable that has no value; it is left as it stands."},

		{CodeDatasetSyntax, "A dataset is not valid CSV or JSONL."},
		{CodeDatasetColumns, "A dataset's header is unusable, or a row has more or fewer fields than it."},
		{CodeDatasetNoPrompt, "A dataset has no prompt column, which is an error, or a row leaves it empty, which is a warning."},
		{CodeDatasetEmpty, "A dataset has no rows to use."},
		{CodeDatasetRange, "A range of rows is malformed or reaches beyond the dataset."},
	}
}
