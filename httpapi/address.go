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
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && o.trusts(client); i-- {
		addr, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = addr.Unmap().WithZone("")
	}
	return client
}

// limitKey names who shares an address's allowance: for IPv6 the whole /64, as
// one client commonly has that many addresses.
func limitKey(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
