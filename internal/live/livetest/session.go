package livetest

import "syscall"

// newSession makes a process lead a session, so that whatever it leaves
// running can be found: timeout changes groups, never sessions.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
