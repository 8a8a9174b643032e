package provider

import "context"

// WithEffort returns a client that sets the reasoning effort of requests that have none. It
// returns c itself if effort is empty.
func WithEffort(c Client, effort string) Client {
	if effort == "" {
		return c
	}
	return withEffort{c, effort}
}

type withEffort struct {
	Client
	effort string
}

func (c withEffort) Complete(ctx context.Context, r *Request) (*Reply, error) {
	if r.Effort == "" {
		asked := *r
		asked.Effort = c.effort
		r = &asked
	}
	return c.Client.Complete(ctx, r)
}
