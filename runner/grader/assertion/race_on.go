//go:build race

package assertion

// raceDetector reports whether this program was built with the race detector.
const raceDetector = true
