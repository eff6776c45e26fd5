package sqltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server's process. Err is set once ended is closed.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// spawn starts a command that ends with this process, however that ends.
func spawn(cmd *exec.Cmd) (*process, error) {
	endWithParent(cmd.SysProcAttr)
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The system takes the end of the thread that started the command for
		// that of the process, so the thread must last as long as the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(p.ended)
	}()
	return p, <-started
}

// stop sends a signal and waits for the process to end by it.
func (p *process) stop(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(startTime):
		return errors.Join(fmt.Errorf("process %d did not end in %s", p.cmd.Process.Pid, startTime), p.kill())
	}
}

// kill ends the process and its children at once.
func (p *process) kill() error {
	children := p.children()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	for _, pid := range children {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// children returns the process's children, as far as the system tells. A child
// that is missed ends by itself when it finds its parent gone.
func (p *process) children() []int {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	listed, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(listed)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
