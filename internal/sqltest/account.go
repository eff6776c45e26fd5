package sqltest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account returns whom a server runs as in place of root; nil if the tests do
// not run as root.
func (b *brand) account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range append(b.users, "nobody") {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%s does not run as root, and there is no user %v or nobody", b.name, b.users)
}

// give makes a path the server's own.
func (s *Server) give(path string) error {
	who, err := s.brand.account()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}

// unprivileged makes a command run as the server's user.
func (s *Server) unprivileged(cmd *exec.Cmd) error {
	who, err := s.brand.account()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	cmd.Dir = s.dir
	return err
}

// find returns where a program is, also in places that are not on PATH.
func find(program string, places ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, place := range places {
		if path, err := exec.LookPath(place + "/" + program); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is needed: install PostgreSQL and MariaDB (apt-get install postgresql mariadb-server)", program)
}
