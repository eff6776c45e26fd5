package main

import (
	"log/slog"
	"path/filepath"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
)

// openEngine opens the engine that is configured: the store in the data
// directory, or Redis. The data directory holds the secret and the first key
// either way. Only a verb that may create data makes new data.
func (c *config) openEngine(a *app) (rollcall.Engine, error) {
	if err := c.openDataDir(); err != nil {
		return nil, err
	}
	if c.redis != nil {
		return redis.Open(a.ctx, *c.redis)
	}
	opts := c.local
	shown := newProgress(a)
	defer shown.finish()
	opts.Progress = shown.steps("opening the data")
	return local.Open(filepath.Join(c.dataDir, storeDir), opts)
}

// log tells the engine where to log.
func (c *config) log(l *slog.Logger) {
	c.local.Logger = l
	if c.redis != nil {
		c.redis.Logger = l
	}
}

// where says where the data is.
func (c *config) where() string {
	if c.redis != nil {
		return c.redis.Where()
	}
	return c.dataDir
}
