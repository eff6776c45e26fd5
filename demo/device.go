package demo

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// device is something that a person logs in with.
type device struct {
	class, id, app, agent, region string
	ip                            netip.Addr
}

// model is a class of devices: what they run, and what browsers and apps say there.
type model struct {
	class  string
	apps   []string
	agents []string
}

// models are the devices that people have. An agent with %s is an app's own, which
// begins with its name.
var models = []model{
	{"web", []string{"chat", "chat", "shop", "shop", "forum"}, []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
		"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
	}},
	{"ios", []string{"chat", "chat", "shop"}, []string{
		"%s/5.4.1 (iPhone; iOS 26.1; Scale/3.00)", "%s/5.4.0 (iPhone; iOS 18.6; Scale/3.00)", "%s/5.4.1 (iPad; iPadOS 26.1; Scale/2.00)",
	}},
	{"android", []string{"chat", "chat", "shop"}, []string{
		"%s/5.4.1 (Linux; Android 16; Pixel 9) Mobile", "%s/5.4.1 (Linux; Android 15; SM-S928B) Mobile", "%s/5.3.8 (Linux; Android 14; 23127PN0CC) Mobile",
	}},
	{"desktop", []string{"chat"}, []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chat/5.4.0 Chrome/140.0.0.0 Electron/38.2.0 Safari/537.36",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chat/5.4.0 Chrome/140.0.0.0 Electron/38.2.0 Safari/537.36",
	}},
}

// appNames are how apps call themselves in an agent.
var appNames = map[string]string{"chat": "Chat", "shop": "Shop", "forum": "Forum"}

// makeDevices gives a person one to three devices, each of another class.
func makeDevices(d *dice, region, kind string) []device {
	home := address(d)
	var out []device
	used := make([]bool, len(models))
	for range 1 + d.weighted(0.45, 0.40, 0.15) {
		at := d.weighted(0.46, 0.22, 0.23, 0.09)
		if kind == "guest" {
			at = 0 // nobody installs anything for a look around
		}
		if used[at] {
			continue
		}
		used[at] = true
		m := &models[at]
		v := device{class: m.class, id: fmt.Sprintf("%s-%08x", m.class, d.below(1<<32)), app: one(d, m.apps), agent: one(d, m.agents), ip: home, region: region}
		if v.class != "web" && v.class != "desktop" {
			v.agent = fmt.Sprintf(v.agent, appNames[v.app])
			if d.roll() < 0.5 {
				v.ip = address(d) // it is mostly on the way
			}
		}
		if kind == "staff" && v.class == "web" {
			v.app = "admin"
		}
		out = append(out, v)
	}
	return out
}

// address returns an address of the ranges that are kept for documentation.
func address(d *dice) netip.Addr {
	host := d.below(254) + 1
	switch d.weighted(0.24, 0.24, 0.24, 0.28) {
	case 0:
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(host)})
	case 1:
		return netip.AddrFrom4([4]byte{198, 51, 100, byte(host)})
	case 2:
		return netip.AddrFrom4([4]byte{203, 0, 113, byte(host)})
	}
	six := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint16(six[4:], uint16(d.below(1<<12)))
	binary.BigEndian.PutUint16(six[6:], uint16(d.below(1<<16)))
	binary.BigEndian.PutUint16(six[14:], uint16(host))
	return netip.AddrFrom16(six)
}
