package catalog

import (
	"context"

	"github.com/fsnotify/fsnotify"
)

// WatchWith is Watch with another source of events.
func (r *Catalog) WatchWith(ctx context.Context, open func() (*fsnotify.Watcher, error)) *Changes {
	return r.watch(ctx, open)
}
