package complete

import (
	"path/filepath"

	"waza/eval/skill"
)

// Skills returns the names of the skills below the current directory.
func Skills() (names []string) {
	for _, dir := range skill.Below(".") {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil
		}
		names = append(names, filepath.Base(abs))
	}
	return names
}
