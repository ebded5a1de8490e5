package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The counters of proc_pid_io(5) that the bench reads.
const (
	ioReads   = "syscr: "       // system calls that read, files and sockets alike
	ioWritten = "write_bytes: " // handed to the disk, in whole pages
)

func writtenAll(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		n, err := processIO(strconv.Itoa(pid), ioWritten)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func processIO(pid, counter string) (int64, error) {
	b, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, counter); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("io of process %s: no %s", pid, counter)
}
