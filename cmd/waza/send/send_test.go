package send_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/output"
	"waza/cmd/waza/send"
	"waza/runner/routing"
)

// lines passes each line that is written to a channel.
type lines chan string

func (l lines) Write(data []byte) (int, error) {
	l <- string(data)
	return len(data), nil
}

// next returns the next line.
func (l lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no line was printed")
		return ""
	}
}

// fakeMessenger is a router whose messages have the states that a test gives.
type fakeMessenger struct {
	routing.Messenger
	sent    chan *routing.Message
	states  chan *routing.Routed
	outcome chan *routing.Routed
}

func (o *fakeMessenger) Watch(ctx context.Context, changed func(routing.Change)) error {
	for {
		select {
		case r := <-o.states:
			changed(routing.Change{Client: &routing.Connected{}})
			changed(routing.Change{Message: r})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (o *fakeMessenger) Send(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	o.sent <- m
	select {
	case r := <-o.outcome:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A choice is printed when it is made, and its answers when they are complete.
func TestSendPrintsChoices(t *testing.T) {
	t.Parallel()
	router := &fakeMessenger{sent: make(chan *routing.Message), states: make(chan *routing.Routed), outcome: make(chan *routing.Routed)}
	printed := make(lines, 10)
	app := &cli.App{Commands: []*cli.Command{send.Command(send.Options{
		Stdout: output.New(printed), Connect: func() (routing.Messenger, func()) { return router, func() {} },
	})}}
	ended := make(chan error, 1)
	go func() { ended <- app.RunContext(t.Context(), []string{"waza", "send", "notebok: a list"}) }()

	const why = `No client has the name "notebok"; did you mean "notebook"?`
	first := routing.Chosen{By: routing.ByWords, Clients: []string{"notebook"}, Reason: why}
	second := routing.Chosen{By: routing.ByModel, Clients: []string{"lists"}, Reason: "It is a list"}
	r := routing.Routed{Message: *<-router.sent}
	other := routing.Routed{Message: routing.Message{ID: "msg-other"}, Choices: []routing.Chosen{second}}
	router.states <- &other
	router.states <- &r
	chosen := r
	chosen.Choices, chosen.Recipients = []routing.Chosen{first}, []routing.Recipient{{Client: "notebook", State: routing.Waiting}}
	router.states <- &chosen
	require.Equal(t, "to notebook, chosen by words: "+why+"\n", printed.next(t))

	again := r
	again.Choices = []routing.Chosen{first, second}
	again.Recipients = []routing.Recipient{
		{Client: "notebook", State: routing.Rejected, Reason: "Full"}, {Client: "lists", State: routing.Waiting},
	}
	router.states <- &again
	require.Equal(t, "notebook: rejected: Full\n", printed.next(t))
	require.Equal(t, "to lists, chosen by the model: It is a list\n", printed.next(t))

	last := again
	last.Status = routing.Taken
	last.Recipients = []routing.Recipient{again.Recipients[0], {Client: "lists", State: routing.Acknowledged}}
	router.outcome <- &last
	require.Equal(t, "lists: acknowledged\n", printed.next(t))
	require.NoError(t, <-ended)
}
