package sqltest

import "syscall"

// endWithParent has the system kill a process when its parent ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
