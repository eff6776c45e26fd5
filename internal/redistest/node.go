package redistest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall/rollcall/internal/faultproxy"
	"github.com/rollcall/rollcall/internal/testport"
)

// Node is one process.
type Node struct {
	tb     testing.TB
	opts   *Options
	dir    string
	args   []string
	port   int
	tls    *authority
	proxy  *faultproxy.Proxy
	cmd    *exec.Cmd
	exited chan struct{}
}

// Proxy is the fault proxy before the node, nil without one.
func (n *Node) Proxy() *faultproxy.Proxy { return n.proxy }

// Addr is where clients reach the node.
func (n *Node) Addr() string {
	if n.proxy != nil {
		return n.proxy.Addr()
	}
	return n.direct()
}

func (n *Node) direct() string { return fmt.Sprintf("127.0.0.1:%d", n.port) }

// announced is the port that clients know the node by.
func (n *Node) announced() int {
	if n.proxy != nil {
		return n.proxy.Port()
	}
	return n.port
}

// newNode prepares a process; start runs it.
func newNode(tb testing.TB, o *Options, ca *authority) *Node {
	tb.Helper()
	port, err := testport.Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	n := &Node{tb: tb, opts: o, dir: tb.TempDir(), port: port, tls: ca}
	if o.Proxied {
		p, err := faultproxy.Listen(n.direct())
		if err != nil {
			tb.Fatalf("start a proxy: %v", err)
		}
		n.proxy = p
		tb.Cleanup(func() { _ = p.Close() })
	}
	return n
}

// config writes the configuration file.
func (n *Node) config(lines ...string) {
	n.tb.Helper()
	all := []string{"bind 127.0.0.1", "dir " + n.dir, "logfile " + filepath.Join(n.dir, "log"), "daemonize no", "save \"\""}
	if n.tls != nil {
		all = append(all, "port 0", fmt.Sprintf("tls-port %d", n.port), "tls-auth-clients no",
			"tls-ca-cert-file "+n.tls.caFile, "tls-cert-file "+n.tls.certFile, "tls-key-file "+n.tls.keyFile,
			"tls-replication yes")
	} else {
		all = append(all, fmt.Sprintf("port %d", n.port))
	}
	if err := os.WriteFile(filepath.Join(n.dir, "redis.conf"), []byte(strings.Join(append(all, lines...), "\n")+"\n"), 0o600); err != nil {
		n.tb.Fatalf("write a configuration: %v", err)
	}
}

// data are the lines of a server that holds data.
func (n *Node) data() []string {
	lines := append([]string{"repl-diskless-sync-delay 0", "repl-ping-replica-period 1", "repl-timeout 5"}, n.opts.auth()...)
	if n.opts.Persist {
		lines = append(lines, "appendonly yes", "appendfsync always")
	}
	if n.proxy != nil {
		lines = append(lines, "replica-announce-ip 127.0.0.1", fmt.Sprintf("replica-announce-port %d", n.announced()))
	}
	return append(lines, n.opts.Extra...)
}

func (n *Node) start(args ...string) {
	n.tb.Helper()
	n.args = args
	n.run()
	n.tb.Cleanup(n.Kill)
}

// run starts the process and waits until it answers.
func (n *Node) run() {
	n.tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		n.tb.Fatal("redis-server is missing: apt-get install redis-server")
	}
	n.cmd = exec.Command(path, append([]string{filepath.Join(n.dir, "redis.conf")}, n.args...)...) //nolint:noctx // ends with Kill
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		n.tb.Fatalf("start redis-server: %v", err)
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // a server that was killed says so
		close(exited)
	}(n.cmd, n.exited)
	n.until("it answers", func() bool {
		reply, err := n.Do("PING")
		return err == nil && reply == "PONG"
	})
}

// until waits for a condition.
func (n *Node) until(what string, holds func() bool) {
	n.tb.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	again := time.NewTicker(5 * time.Millisecond) // the processes give no sign but their answers
	defer again.Stop()
	for !holds() {
		ended := false
		select {
		case <-n.exited:
			ended = true
		default:
		}
		if ended || time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(n.dir, "log"))
			n.tb.Fatalf("redis-server on port %d: waited in vain until %s\n%s", n.port, what, log)
		}
		<-again.C
	}
}

// Kill ends the process with SIGKILL, and returns once it has ended.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.exited
}

// Stop freezes the process with SIGSTOP; Continue lets it go on.
func (n *Node) Stop() { n.signal(syscall.SIGSTOP) }

// Continue ends a Stop.
func (n *Node) Continue() { n.signal(syscall.SIGCONT) }

func (n *Node) signal(s syscall.Signal) {
	n.tb.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.tb.Errorf("signal redis-server: %v", err)
	}
}

// Restart starts a process that was killed, on the same port and directory.
func (n *Node) Restart() {
	n.tb.Helper()
	n.run()
}

// Do carries out a command as the administrator, past any proxy. An array comes
// as its elements, one behind the other on lines of their own.
func (n *Node) Do(args ...string) (string, error) {
	values, err := n.Values(args...)
	return strings.Join(values, "\n"), err
}

// Values is Do for a command that answers with an array, flattened.
func (n *Node) Values(args ...string) ([]string, error) {
	c, err := n.dial()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // what was said has been heard
	in := bufio.NewReader(c)
	if password := n.opts.password(); password != "" && (len(n.args) == 0 || n.args[0] != "--sentinel") {
		if _, err := roundTrip(c, in, "AUTH", password); err != nil {
			return nil, err
		}
	}
	return roundTrip(c, in, args...)
}

func (n *Node) dial() (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	var c net.Conn
	var err error
	if n.tls != nil {
		c, err = tls.DialWithDialer(d, "tcp", n.direct(), &tls.Config{RootCAs: n.tls.pool, ServerName: "127.0.0.1"}) //nolint:noctx // also from cleanups, which have no context
	} else {
		c, err = d.Dial("tcp", n.direct())
	}
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(time.Minute))
}

func roundTrip(w io.Writer, r *bufio.Reader, args ...string) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return nil, err
	}
	return readReply(r)
}

var errReply = errors.New("redistest: a reply that cannot be read")

// readReply reads one reply of RESP2, flattened.
func readReply(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errReply
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+', ':':
		return []string{text}, nil
	case '-':
		return nil, errors.New(text)
	}
	n, err := strconv.Atoi(text)
	if err != nil || (kind != '$' && kind != '*') {
		return nil, errReply
	}
	if kind == '$' {
		if n < 0 {
			return []string{""}, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return []string{string(b[:n])}, err
	}
	var all []string
	var failed error
	for range n {
		some, err := readReply(r)
		all = append(all, some...)
		failed = errors.Join(failed, err)
	}
	return all, failed
}

// Keys returns all keys of the node, in no order.
func (n *Node) Keys() []string {
	n.tb.Helper()
	var keys []string
	cursor := "0"
	for {
		values, err := n.Values("SCAN", cursor, "COUNT", "1000")
		if err != nil {
			n.tb.Fatalf("read the keys: %v", err)
		}
		cursor = values[0]
		keys = append(keys, values[1:]...)
		if cursor == "0" {
			return keys
		}
	}
}

// UsedMemory is what the node says it has allocated, in bytes.
func (n *Node) UsedMemory() int64 {
	n.tb.Helper()
	info, err := n.Do("INFO", "memory")
	if err != nil {
		n.tb.Fatalf("read the memory: %v", err)
	}
	used, _ := strconv.ParseInt(field(info, "used_memory"), 10, 64)
	return used
}

// field finds name:value among the lines of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}
