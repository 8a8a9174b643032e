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
	reply := e.Reply()
	require.Equal(t, int64(-32003), reply.Code)
	require.Equal(t, `{"runId":"<1>"}`, string(*reply.Data))
	require.Equal(t, "run not found (-32003)", e.Error())

	var found *Error
	require.True(t, errors.As(fmt.Errorf("run.status: %w", e), &found))
	require.Same(t, e, found)

	require.Nil(t, (&Error{}).Reply().Data)
	require.Nil(t, (&Error{Data: map[string]any{"f": func() {}}}).Reply().Data)
}

func TestEncode(t *testing.T) {
	t.Parallel()
	raw, err := Encode(map[string]string{"a": "<&>\n\u2028"})
	require.NoError(t, err)
	require.Equal(t, `{"a":"<&>\n\u2028"}`, string(raw))
	_, err = Encode(func() {})
	require.Error(t, err)
}
