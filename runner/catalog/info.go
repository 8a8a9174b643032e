package catalog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"waza/runner/record"
)

// In the catalog an Info is a line of fields with a tab after each: texts, then
// times, numbers, damage and models. It is a tenth of the work that JSON is, and of all that a
// list of many runs does decoding was most.
//
// A test fills every field of Info and finds it again.

func infoTexts(i *Info) [10]*string {
	s := &i.Suite
	return [...]*string{&i.RunID, (*string)(&i.Status), &s.Path, &s.Name, &s.Skill, &s.Version, &s.Description, &i.Executor, &i.Agent, &i.Model}
}

func infoNumbers(i *Info) [16]*int {
	a, b := &i.Tasks, &i.Trials
	return [...]*int{
		&a.Total, &a.Passed, &a.Failed, &a.Errors, &a.Timeouts, &a.Cancelled, &a.Skipped, &a.NeedsReview,
		&b.Total, &b.Passed, &b.Failed, &b.Errors, &b.Timeouts, &b.Cancelled, &b.Skipped, &b.NeedsReview,
	}
}

var (
	escapeField   = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`)
	unescapeField = strings.NewReplacer(`\\`, "\\", `\t`, "\t", `\n`, "\n")
)

func encodeInfo(i *Info) string {
	var b strings.Builder
	for _, text := range infoTexts(i) {
		b.WriteString(escapeField.Replace(*text) + "\t")
	}
	b.WriteString(encodeTime(&i.StartedAt) + "\t" + encodeTime(i.EndedAt) + "\t")
	for _, n := range infoNumbers(i) {
		b.WriteString(strconv.Itoa(*n) + "\t")
	}
	b.WriteString(encodeDamage(i.Damage) + "\t")
	for _, model := range i.Models {
		b.WriteString(escapeField.Replace(model) + "\t")
	}
	return b.String()
}

// decodeInfo reports whether the line is an Info.
func decodeInfo(line string, i *Info) bool {
	var field string
	var ok bool
	for _, text := range infoTexts(i) {
		if field, line, ok = strings.Cut(line, "\t"); !ok {
			return false
		}
		*text = unescape(field)
	}
	started, line, ok1 := strings.Cut(line, "\t")
	ended, line, ok2 := strings.Cut(line, "\t")
	begin, known, ok3 := decodeTime(started)
	end, over, ok4 := decodeTime(ended)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return false
	}
	if known {
		i.StartedAt = begin
	}
	if over {
		i.EndedAt = &end
	}
	for _, n := range infoNumbers(i) {
		if field, line, ok = strings.Cut(line, "\t"); !ok {
			return false
		}
		var err error
		if *n, err = strconv.Atoi(field); err != nil {
			return false
		}
	}
	if field, line, ok = strings.Cut(line, "\t"); !ok || !decodeDamage(field, i) {
		return false
	}
	for line != "" {
		if field, line, ok = strings.Cut(line, "\t"); !ok {
			return false
		}
		i.Models = append(i.Models, unescape(field))
	}
	return true
}

// encodeDamage gives JSON; nothing for no damage, which most runs have.
func encodeDamage(d *record.Damage) string {
	if d == nil {
		return ""
	}
	b, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	return escapeField.Replace(string(b))
}

func decodeDamage(field string, i *Info) bool {
	if field == "" {
		return true
	}
	i.Damage = new(record.Damage)
	return json.Unmarshal([]byte(unescape(field)), i.Damage) == nil
}

func unescape(field string) string {
	if strings.Contains(field, `\`) {
		return unescapeField.Replace(field)
	}
	return field
}

// encodeTime gives the nanoseconds since 1970; nothing for no time.
func encodeTime(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}

func decodeTime(field string) (t time.Time, known, ok bool) {
	if field == "" {
		return t, false, true
	}
	n, err := strconv.ParseInt(field, 10, 64)
	return time.Unix(0, n).UTC(), true, err == nil
}
