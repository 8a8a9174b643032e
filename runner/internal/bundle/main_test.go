package bundle

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(helperEnv); args != "" {
		unpackAndWait(strings.Split(args, "\n"))
		return
	}
	goleak.VerifyTestMain(m)
}
