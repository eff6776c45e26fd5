package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
)

// Allow are the private targets that may be reached: networks, and hosts by their name.
type Allow struct {
	Networks []netip.Prefix
	Hosts    []string // in small letters
}

// ParseAllow reads a list such as "10.1.0.0/16, ::1, hooks.internal".
func ParseAllow(list []string) (Allow, error) {
	const field = "webhooks.allow"
	var a Allow
	for _, text := range list {
		text = strings.TrimSpace(text)
		switch addr, err := netip.ParseAddr(text); {
		case text == "":
		case err == nil && addr.Zone() == "":
			addr = addr.Unmap()
			a.Networks = append(a.Networks, netip.PrefixFrom(addr, addr.BitLen()))
		case strings.Contains(text, "/"):
			network, err := netip.ParsePrefix(text)
			if err != nil || network.Addr().Is4In6() {
				return a, rollcall.Invalid(field, "%.60q is no network such as 10.1.0.0/16", text)
			}
			a.Networks = append(a.Networks, network.Masked())
		case strings.ContainsAny(text, ":[]%*"):
			return a, rollcall.Invalid(field, "%.60q is neither a network, such as 10.1.0.0/16, nor the name of a host without a port", text)
		default:
			a.Hosts = append(a.Hosts, strings.ToLower(strings.TrimSuffix(text, ".")))
		}
	}
	return a, nil
}

// reserved are the networks that are not the public internet, besides those that
// [netip.Addr] knows by name. From the registries of IANA for special-purpose addresses.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"168.63.129.16/32", // what a machine of Azure asks about itself
	"2001::/23", "2001:db8::/32",
	"2002::/16", // IPv4 by 6to4
	"3fff::/20",
)

// global is what has been given out of IPv6. What is outside is not the public internet,
// and often IPv4 in another form.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// isPublic reports whether an address is one of the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsValid() && a.Zone() == "" && a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() &&
		(a.Is4() || global.Contains(a)) && !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// address returns an error if an address must not be reached.
func (a Allow) address(addr netip.Addr) error {
	addr = addr.Unmap()
	if isPublic(addr) || slices.ContainsFunc(a.Networks, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	return &refusedError{addr}
}

// refusedError says that an address must not be reached.
type refusedError struct{ addr netip.Addr }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is no public address: allow it with webhooks.allow if messages are meant to go there", e.addr)
}

// dialer connects to targets. It looks at the address that is dialed, after the name was
// resolved: no name can come to mean another address in between.
type dialer struct {
	allow    Allow
	resolver *net.Resolver // nil for the system's
}

func (d *dialer) DialContext(ctx context.Context, network, target string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	n := net.Dialer{Timeout: dialTimeout, Resolver: d.resolver}
	if !slices.Contains(d.allow.Hosts, strings.ToLower(strings.TrimSuffix(host, "."))) {
		n.Control = d.control
	}
	return n.DialContext(ctx, network, target)
}

// control is called with the address of each attempt to connect.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("the address cannot be read")
	}
	return d.allow.address(at.Addr())
}

const dialTimeout = 10 * time.Second
