package grader

// Judges reports whether graders of a type, by any of its names, leave the score
// to a model or a person.
func Judges(typ string) bool { return prompt.Is(typ) || human.Is(typ) || humanCalibration.Is(typ) }
