// Command visits is a site of two pages: a request to /visit?user=42 is a beat
// of user 42, /online?user=42 lists who is online and who of 42's friends is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

func newHandler(roll *rollcall.Roll) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/visit", func(w http.ResponseWriter, r *http.Request) {
		if err := roll.Beat(r.Context(), r.FormValue("user")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, "welcome")
	})
	mux.HandleFunc("/online", func(w http.ResponseWriter, r *http.Request) {
		page := rollcall.PageRequest{Limit: 100}
		friends, err := roll.OnlineFriends(r.Context(), rollcall.FriendQuery{User: r.FormValue("user"), Page: page})
		everyone, allErr := roll.Online(r.Context(), roll.Window(), page)
		if err = errors.Join(err, allErr); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, u := range everyone.Items {
			fmt.Fprintln(w, "online", u.User)
		}
		for _, f := range friends.Items {
			fmt.Fprintln(w, "friend", f.User)
		}
	})
	return mux
}

func serve(ctx context.Context, addr string, roll *rollcall.Roll) error {
	if err := roll.AddFriends(ctx, "42", true, rollcall.Friend{User: "7"}, rollcall.Friend{User: "23"}); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: newHandler(roll), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve tells of it
	return server.Serve(listener)
}

func main() {
	addr := flag.String("listen", "127.0.0.1:8090", "address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	engine, err := local.Open("", local.Options{InMemory: true}) // name a directory to keep the data
	if err == nil {
		var roll *rollcall.Roll
		if roll, err = rollcall.New(engine, rollcall.Options{Window: 10 * time.Minute}); err == nil {
			err = errors.Join(serve(ctx, *addr, roll), roll.Close())
		}
		err = errors.Join(err, engine.Close())
	}
	stop()
	if !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "visits:", err)
		os.Exit(1)
	}
}
