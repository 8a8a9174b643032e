package sarif

import ()

//
// These types are the objects of SARIF 2.1.0 that waza writes, with the names of the standard.
//
// The library go-sarif has them all, but waza does not use it. It holds a whole run in memory,
// while waza writes results one by one. It writes some twenty empty lists and defaults with each
// result, which more than doubles the size. It needs a pointer for every text, and it links a
// validator of JSON Schema.

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
	// sarifRoot represents the root of the repository; GitHub uses this name.
	sarifRoot = "%SRCROOT%"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

// A sarifRun is a run without its results, which are written after it one by one.
type sarifRun struct {
	Tool               sarifTool                `json:"tool"`
	AutomationDetails  sarifAutomation          `json:"automationDetails"`
	OriginalURIBaseIDs map[string]sarifLocation `json:"originalUriBaseIds,omitempty"`
	ColumnKind         string                   `json:"columnKind"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name  string      `json:"name"`
	Rules []sarifRule `json:"rules"`
}

type sarifAutomation struct {
	ID string `json:"id"`
}

type sarifRule struct {
	ID               string             `json:"id"`
	ShortDescription sarifText          `json:"shortDescription"`
	FullDescription  sarifText          `json:"fullDescription"`
	Help             sarifText          `json:"help"`
	Configuration    sarifConfiguration `json:"defaultConfiguration"`
	Properties       sarifRuleTags      `json:"properties"`
}

type sarifRuleTags struct {
	Tags []string `json:"tags"`
}

type sarifConfiguration struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifPlace      `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints,omitempty"`
	Fixes        []sarifFix        `json:"fixes,omitempty"`
	Properties   *sarifTrialFacts  `json:"properties,omitempty"`
}

// sarifTrialFacts identify a trial in the property bag of a result. SARIF leaves the form of the
// bag to the tool, and readers show it unchanged.
type sarifTrialFacts struct {
	Task  string   `json:"task"`
	Trial int      `json:"trial"`
	Score *float64 `json:"score,omitempty"`
}

type sarifPlace struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifLocation `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifLocation struct {
	URI       string `json:"uri"`
	URIBaseID string `json:"uriBaseId,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

type sarifFix struct {
	Description sarifText     `json:"description"`
	Changes     []sarifChange `json:"artifactChanges"`
}

type sarifChange struct {
	Artifact     sarifLocation      `json:"artifactLocation"`
	Replacements []sarifReplacement `json:"replacements"`
}

type sarifReplacement struct {
	Deleted  sarifRegion `json:"deletedRegion"`
	Inserted sarifText   `json:"insertedContent"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Start         string              `json:"startTimeUtc,omitempty"`
	End           string              `json:"endTimeUtc,omitempty"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	Properties    *sarifRunFacts      `json:"properties,omitempty"`
}

// sarifRunFacts describe the run of an invocation.
type sarifRunFacts struct {
	Sandbox string `json:"sandbox"`
}

type sarifNotification struct {
	Level     string       `json:"level"`
	Message   sarifText    `json:"message"`
	Locations []sarifPlace `json:"locations,omitempty"`
}
