package wire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestError(t *testing.T) {
	t.Parallel()
	e := &Error{Code: CodeRunNotFound, Message: "run not found", Data: map[string]any{"runId": "<1>"}}
	require.Equal(t, `{"code":-32003,"message":"run not found","data":{"runId":"<1>"}}`, string(e.encode()))
	require.Equal(t, "run not found (-32003)", e.Error())

	var found *Error
	require.True(t, errors.As(fmt.Errorf("run.status: %w", e), &found))
	require.Same(t, e, found)

	require.Equal(t, `{"code":0,"message":""}`, string((&Error{}).encode()))
	require.Equal(t, `{"code":1,"message":"m"}`, string((&Error{1, "m", map[string]any{"f": func() {}}}).encode()))
}
