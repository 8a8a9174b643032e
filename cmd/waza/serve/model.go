package serve

import (
	"cmp"
	"context"
	"errors"

	"waza/cmd/waza/config"
	"waza/runner/provider"
)

// ErrNoModel reports that the configuration has no model.
var ErrNoModel = errors.New("the configuration of waza serve has no model")

// Models gives all doors clients of the configured model. It is safe for concurrent use.
type Models struct {
	config config.Model
	pool   *provider.Pool
}

// NewModels makes the pool that all clients share. The caller closes it after the last call.
func NewModels(c config.Model) *Models {
	return &Models{config: c, pool: provider.NewPool(provider.PoolOptions{})}
}

// Client returns a client for a model of the configured API; an empty name means the configured
// model. It reads the key, but sends the provider no request yet. The error is [ErrNoModel] when
// the configuration has no model, or a [*provider.Error].
func (m *Models) Client(ctx context.Context, name string) (provider.Client, error) {
	if m.config.Executor == "" {
		return nil, ErrNoModel
	}
	return m.pool.Client(ctx, provider.API(m.config.Executor), m.config.Endpoint, cmp.Or(name, m.config.Model))
}

// Redact removes the keys of all clients from a text.
func (m *Models) Redact(text string) string { return m.pool.Redactor().Text(text) }

// Close closes idle connections.
func (m *Models) Close() { m.pool.Close() }
