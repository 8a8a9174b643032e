package engine_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if state := os.Getenv(processState); state != "" {
		os.Exit(process(state))
	}
	goleak.VerifyTestMain(m)
}
