package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
)

// eventServer is the name of the process that serves streams and makes the events.
const eventServer = "event server"

// redisVariable names the Redis of the event server; it is embedded without one.
const redisVariable = "ROLLCALL_BENCH_REDIS"

// friendsVariable says how many friends each reader of live friends has.
const friendsVariable = "ROLLCALL_BENCH_FRIENDS"

const (
	// mostReaders are the readers of the largest size, unless said.
	mostReaders = 10_000
	// friendsOfReader is how many friends each reader of live friends has, unless said. It
	// is also how many readers have each user as a friend.
	friendsOfReader = 20
)

// eventSite is what the event server says of itself when it is ready.
type eventSite struct {
	Address string
	Tokens  []string // of the readers of live friends
}

// serveEvents serves streams for so many readers. Each line of the standard input is a
// command: settle gives memory back, rate N makes N events a second from then on. It
// ends with the input.
func serveEvents(ctx context.Context, readers int) error {
	engine, done, err := eventEngine(ctx)
	if err != nil {
		return err
	}
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		return errors.Join(err, done())
	}
	friends, err := strconv.Atoi(os.Getenv(friendsVariable))
	if err != nil {
		return errors.Join(err, roll.Close(), done())
	}
	users := readers * friends / friendsOfReader
	site, err := eventReaders(ctx, roll, readers, friends, users)
	if err != nil {
		return errors.Join(err, roll.Close(), done())
	}
	api, err := httpapi.New(roll, httpapi.Options{Auth: httpapi.AuthOff})
	if err != nil {
		return errors.Join(err, roll.Close(), done())
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, roll.Close(), done())
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(api.EndStreams)
	go func() { _ = server.Serve(listener) }() // it ends with the server
	site.Address = listener.Addr().String()
	if err := json.NewEncoder(os.Stdout).Encode(site); err != nil {
		return err
	}
	err = obey(ctx, roll, users)
	return errors.Join(err, server.Shutdown(ctx), roll.Close(), done())
}

// eventEngine opens the engine that was chosen; done closes it.
func eventEngine(ctx context.Context) (engine rollcall.Engine, done func() error, err error) {
	if url := os.Getenv(redisVariable); url != "" {
		e, err := redis.Open(ctx, redis.Options{URL: url, Timeout: time.Minute})
		if err != nil {
			return nil, nil, err
		}
		return e, e.Close, nil
	}
	dir, err := os.MkdirTemp("", "rollcall-bench")
	if err != nil {
		return nil, nil, err
	}
	e, err := local.Open(dir, local.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e, func() error { return errors.Join(e.Close(), os.RemoveAll(dir)) }, nil
}

// eventReaders logs the readers in and gives each their friends, of so many users.
func eventReaders(ctx context.Context, roll *rollcall.Roll, readers, friends, users int) (eventSite, error) {
	site := eventSite{Tokens: make([]string, readers)}
	var all sync.WaitGroup
	failed := make(chan error, 64)
	for part := range 64 {
		all.Go(func() {
			for n := part; n < readers; n += 64 {
				in, err := roll.Login(ctx, rollcall.Login{User: fmt.Sprint("reader-", n)})
				var list []rollcall.Friend
				for f := range friends {
					list = append(list, rollcall.Friend{User: fmt.Sprint("u", (n*friends+f)%users)})
				}
				if err == nil {
					err = roll.ReplaceFriends(ctx, fmt.Sprint("reader-", n), list)
				}
				if err != nil {
					failed <- err
					return
				}
				site.Tokens[n] = in.Token
			}
		})
	}
	all.Wait()
	close(failed)
	return site, <-failed
}

// obey does what the lines of the standard input say.
func obey(ctx context.Context, roll *rollcall.Roll, users int) error {
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		rate := 0
		if _, err := fmt.Sscanf(lines.Text(), "rate %d", &rate); err != nil {
			debug.FreeOSMemory()
		} else {
			work.Go(func() { makeEvents(ctx, roll, users, rate) })
		}
		fmt.Println("done")
	}
	return nil
}

// makeEvents logs users in and kicks them: two events each time, one of the session and
// one of the user who comes or goes.
func makeEvents(ctx context.Context, roll *rollcall.Roll, users, rate int) {
	const workers = 32
	due := make(chan int, workers)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for n := range due {
				user := fmt.Sprint("u", n*7919%users)
				if _, err := roll.Login(ctx, rollcall.Login{User: user}); err != nil {
					continue
				}
				_, _ = roll.Kick(ctx, rollcall.Kick{User: user}) // what fails is missing from the rate
			}
		})
	}
	tick := time.NewTicker(4 * time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-tick.C:
			due <- n
		case <-ctx.Done():
		}
	}
	close(due)
	all.Wait()
}
