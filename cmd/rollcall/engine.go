package main

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"

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
	if isTerminal(a.stderr) {
		opts.Progress = loading(a)
	}
	return local.Open(filepath.Join(c.dataDir, storeDir), opts)
}

// log tells the engine where to log.
func (c *config) log(l *slog.Logger) {
	c.local.Logger = l
	if c.redis != nil {
		c.redis.Logger = l
	}
}

// loading shows how far opening has come, once it takes more than 2 s.
func loading(a *app) func(ready, total int) {
	start := time.Now()
	var bar *progressbar.ProgressBar
	return func(ready, total int) {
		if bar == nil && time.Since(start) > 2*time.Second {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(a.stderr),
				progressbar.OptionSetDescription("opening the data"), progressbar.OptionClearOnFinish())
		}
		if bar != nil {
			_ = bar.Set(ready) // it only shows
		}
	}
}

// where says where the data is.
func (c *config) where() string {
	if c.redis != nil {
		return c.redis.Where()
	}
	return c.dataDir
}
