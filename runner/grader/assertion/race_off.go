//go:build !race

package assertion

// raceDetector says that this program was built with the race detector.
const raceDetector = false
