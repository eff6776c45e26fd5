package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/console"
	"github.com/rollcall/rollcall/httpapi"
)

// welcome says where to go; on the first run it makes the admin key, and returns it.
func (s *server) welcome(base string) (made *rollcall.APIKey, err error) {
	key, err := s.firstKey()
	if err != nil {
		return nil, err
	}
	out := s.app.stdout
	fmt.Fprintf(out, "Rollcall %s serves on %s\n", version(), base)
	fmt.Fprintf(out, "  data  %s\n", s.config.where())
	fmt.Fprintf(out, "  docs  %s/docs/\n", base)
	if key.note != "" {
		fmt.Fprintf(out, "  %s\n", key.note)
	}
	note, err := s.consoleNote(base, key.made)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%s\n", note)
	fmt.Fprintf(out, "\nLog a user in:\n  curl %s-H 'Content-Type: application/json' -d '{\"user\":\"alice\",\"device\":\"web\"}' %s/v1/sessions\n\n",
		key.header, base)
	return key.made, nil
}

// showsSecrets reports whether keys and links may stand in the output: elsewhere they
// would stay in a log.
func (s *server) showsSecrets() bool { return s.extras.showSecrets || isTerminal(s.app.stdout) }

// welcomeKey is what the welcome says of the key.
type welcomeKey struct {
	note   string           // where the key is; "" says nothing
	header string           // what curl needs, with a space after it
	made   *rollcall.APIKey // on the first run; nil for none
}

// linkFile keeps the one-time link of the first run, if there is no terminal to show
// it on.
const linkFile = "console.link"

// consoleNote says where the console is, on the first run with a link that signs in
// once.
func (s *server) consoleNote(base string, made *rollcall.APIKey) (string, error) {
	page := "Open the console:\n  " + base + console.Path
	path := filepath.Join(s.config.dataDir, linkFile)
	if made == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // it has long expired
			s.log.Warn("the link of the first run could not be removed", "error", err)
		}
		return page, nil
	}
	text, _, err := s.roll.NewConsoleLink(s.app.ctx, *made, made.Role)
	if err != nil {
		return "", err
	}
	link := httpapi.ConsoleLink(base, text)
	if s.showsSecrets() {
		return "Open the console; this link signs in once, within 15 minutes:\n  " + link, nil
	}
	if err := writePrivate(path, link+"\n"); err != nil {
		return "", err
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return "Open the console; a link that signs in once, within 15 minutes, is in " + path + ":\n  " + base + console.Path, nil
}

// firstKey makes sure that there is an admin key: the configured one, or on
// the first run one that is made. Without keys there is none.
func (s *server) firstKey() (welcomeKey, error) {
	ctx := s.app.ctx
	if s.config.http.Auth == httpapi.AuthOff {
		return welcomeKey{note: "auth  off: whoever reaches this address may do everything"}, nil
	}
	unknown := welcomeKey{header: bearer("'", "YOUR_KEY")}
	if text := s.config.adminKey; text != "" {
		key, err := s.roll.ConfigureAdminKey(ctx, text)
		unknown.note = "key   the one of admin_key"
		if !key.RevokedAt.IsZero() {
			s.log.Warn("the configured admin_key was revoked and stays so: configure another one", "key", key.ID, "revoked_at", key.RevokedAt)
			unknown.note = "key   the configured admin_key was REVOKED: configure another one"
		}
		return unknown, err
	}
	path := filepath.Join(s.config.dataDir, keyFile)
	keys, err := s.roll.Keys(ctx)
	if err != nil {
		return welcomeKey{}, err
	}
	if len(keys) > 0 {
		if _, err := os.Stat(path); err != nil {
			return unknown, nil //nolint:nilerr // whoever moved the file knows the key
		}
		return keyIn(path), nil
	}
	// The file comes first: a crash in between then leaves no store that has a
	// key which nobody knows.
	text := "rck_" + rand.Text() + rand.Text()
	if err := writePrivate(path, text+"\n"); err != nil {
		return welcomeKey{}, err
	}
	made, _, err := s.roll.CreateKey(ctx, rollcall.NewKey{Name: "first run", Role: rollcall.RoleAdmin, Text: text})
	if err != nil {
		return welcomeKey{}, errors.Join(err, os.Remove(path))
	}
	key := keyIn(path)
	if s.showsSecrets() {
		key = welcomeKey{note: fmt.Sprintf("key   %s (kept in %s)", text, path), header: bearer("'", text)}
	}
	key.made = &made
	return key, nil
}

// keyIn is a key that curl reads from its file, so that it is never shown. The
// path is absolute: the line may be pasted into another terminal.
func keyIn(path string) welcomeKey {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return welcomeKey{note: "key   in " + path, header: bearer(`"`, "$(cat "+quoted(path)+")")}
}

func bearer(quote, text string) string {
	return fmt.Sprintf("-H %sAuthorization: Bearer %s%s ", quote, text, quote)
}

// quoted returns a path as a shell takes it literally.
func quoted(path string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' ||
			'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// reachable returns an address that this machine can be asked at, also for a
// listener on every address.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}
