package redistest

import (
	"fmt"
	"net/url"
)

// Options say how the servers are set up. The zero value is an open server that
// keeps nothing on disk.
type Options struct {
	User    *User    // the restricted user that URL carries; the default user then has a password
	TLS     bool     // encrypted connections only, by an authority made for the test
	Proxied bool     // clients reach the servers through a fault proxy
	Persist bool     // append-only file, synced on every write
	Extra   []string // lines of the configuration
}

// User is a user of Redis.
type User struct {
	Name, Password string
	Rules          string // such as "~rc:* -@all +get"
}

const adminPassword = "the-password-of-the-tests"

// auth are the lines of the configuration about users.
func (o *Options) auth() []string {
	if o.User == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("user default on >%s ~* &* +@all", adminPassword),
		fmt.Sprintf("user %s on >%s %s", o.User.Name, o.User.Password, o.User.Rules),
		fmt.Sprintf("masterauth %s", adminPassword),
	}
}

func (o *Options) password() string {
	if o.User == nil {
		return ""
	}
	return adminPassword
}

// login is the part of a URL before the hosts.
func (o *Options) login() string {
	if o.User == nil {
		return ""
	}
	return url.UserPassword(o.User.Name, o.User.Password).String() + "@"
}
