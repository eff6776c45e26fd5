package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// peerOf returns the address at the other end of the connection.
func peerOf(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // a Unix socket, say
	}
	return ap.Addr().Unmap().WithZone("")
}

func (o *Options) trusts(addr netip.Addr) bool {
	for _, p := range o.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// clientOf walks back from the peer through X-Forwarded-For as long as each
// hop is trusted to tell the truth about the one before.
func (o *Options) clientOf(r *http.Request, peer netip.Addr) netip.Addr {
	client := peer
	if !o.trusts(client) {
		return client // the common case: nothing to read
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && o.trusts(client); i-- {
		addr, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		client = addr
	}
	return client
}

// parseHop reads an address as proxies write them: alone, in brackets, or with a
// port.
func parseHop(text string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if n := len(text); n > 2 && text[0] == '[' && text[n-1] == ']' {
		text = text[1 : n-1]
	}
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err == nil
}

// limitKey names who shares an address's allowance: for IPv6 the whole /64, as
// one client commonly has that many addresses.
func limitKey(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address, such as of a Unix socket
	}
	return p
}
