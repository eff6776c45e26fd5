package takeover

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Layout is a way in which a hand-built system keeps who is there.
type Layout string

// The layouts that are known.
const (
	OnlineZset    Layout = "online-zset"
	LastSeenZset  Layout = "last-seen-zset"
	HeartbeatZset Layout = "heartbeat-zset"
	LoginBitmaps  Layout = "login-bitmaps"
	MinuteSets    Layout = "minute-sets"
)

// Layouts returns all layouts.
func Layouts() []Layout {
	return []Layout{OnlineZset, LastSeenZset, HeartbeatZset, LoginBitmaps, MinuteSets}
}

// defaultKeys are the names that the articles use.
var defaultKeys = map[Layout]string{
	OnlineZset:    "online:user",
	LastSeenZset:  "last.seen",
	HeartbeatZset: "users",
	LoginBitmaps:  "loginLog_{month}_{kind}_{user}",
	MinuteSets:    "active.users:{minute}",
}

// Names are the keys of a hand-built system. Each is a key, or the name of a
// family of keys with places in braces.
type Names struct {
	// Key is the key of a sorted set, or the name of the bitmaps
	// (loginLog_{month}_{kind}_{user}) or of the sets (active.users:{minute});
	// default: the one that the layout's article uses.
	Key string
	// Records are the login records of an online list, such as login:{user}; ""
	// if there are none. In a list of sessions {user} stands for user:session too.
	Records string
	// Sets are the sets of each user's sessions, in an online list of sessions;
	// default: Key and :{user}.
	Sets string
	// Friends are the lists of friends, such as user:{user}:friends; "" for none.
	Friends string
}

// names are Names that have been read.
type names struct {
	layout  Layout
	key     string
	family  template // of bitmaps and of minutes
	records *template
	sets    *template
	friends *template
}

func (n Names) read(layout Layout) (names, error) {
	if !slices.Contains(Layouts(), layout) {
		var all []string
		for _, l := range Layouts() {
			all = append(all, string(l))
		}
		return names{}, fmt.Errorf("--layout: there is no %q: it is one of %s", layout, strings.Join(all, ", "))
	}
	out := names{layout: layout, key: cmp.Or(n.Key, defaultKeys[layout])}
	var errs []error
	family := func(flag, text string, places ...string) *template {
		if text == "" {
			return nil
		}
		t, err := parseTemplate(text, places...)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
		return &t
	}
	switch layout {
	case LoginBitmaps:
		out.family = *family("key", out.key, "month", "kind", "user")
	case MinuteSets:
		out.family = *family("key", out.key, "minute")
	case OnlineZset:
		out.records = family("records", n.Records, "user")
		out.sets = family("sets", cmp.Or(n.Sets, out.key+":{user}"), "user")
	case LastSeenZset, HeartbeatZset:
	}
	out.friends = family("friends", n.Friends, "user")
	if layout != OnlineZset && (n.Records != "" || n.Sets != "") {
		errs = append(errs, errors.New("--records and --sets belong to --layout online-zset"))
	}
	return out, errors.Join(errs...)
}
