package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ticks is the unit of CPU times in /proc: USER_HZ is 100 on every Linux that Go runs on.
const ticks = 100

// Open files of a program that holds many streams: two sockets for each, and some of its own.
const (
	filesOwn    = 500
	filesWanted = 2*maxIdle + filesOwn
)

// raiseFileLimit allows as many open files as the system lets us have, and returns for how many streams
// that is enough. What we start inherits it.
func raiseFileLimit() (streams int, err error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	more := syscall.Rlimit{Cur: filesWanted, Max: filesWanted}
	if l.Max >= filesWanted || syscall.Setrlimit(syscall.RLIMIT_NOFILE, &more) != nil { // root may
		l.Cur = l.Max
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	} else {
		l.Cur = filesWanted
	}
	return max(1, (int(min(l.Cur, filesWanted))-filesOwn)/2), err
}

// sample is what was used up to one moment: CPU seconds, and allocations of the program under test.
type sample struct {
	target, provider, client, machine float64
	allocations                       float64
}

// takeSample reads them all at once. Allocations are 0 where the program does not tell.
func takeSample(targets []int, provider int, metrics string) (s sample, err error) {
	for _, pid := range families(targets) {
		used, err := processCPU(strconv.Itoa(pid))
		if err != nil {
			return s, err
		}
		s.target += used
	}
	if s.provider, err = processCPU(strconv.Itoa(provider)); err != nil {
		return s, err
	}
	if s.client, err = processCPU("self"); err != nil {
		return s, err
	}
	if s.machine, err = machineCPU(); err != nil {
		return s, err
	}
	s.allocations, err = allocations(metrics)
	return s, err
}

// since is what was used from an earlier sample to this one.
func (s sample) since(e sample) sample {
	return sample{
		s.target - e.target, s.provider - e.provider, s.client - e.client, s.machine - e.machine,
		s.allocations - e.allocations,
	}
}

// others is what processes used that have nothing to do with the bench.
func (s sample) others() float64 { return max(0, s.machine-s.target-s.provider-s.client) }

func processCPU(pid string) (float64, error) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	return parseProcessCPU(b)
}

// parseProcessCPU is utime and stime, the 14th and 15th field of proc_pid_stat(5). The second one, a
// name in brackets, may hold anything.
func parseProcessCPU(stat []byte) (float64, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12 // the third field is the first here
	if len(fields) <= system {
		return 0, fmt.Errorf("stat of a process: %q", stat)
	}
	return sumTicks(fields[user : system+1])
}

func machineCPU() (float64, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseMachineCPU(b)
}

// parseMachineCPU is all of the first line of proc_stat(5) but idle, iowait, and the guests, which
// are in user already.
func parseMachineCPU(stat []byte) (float64, error) {
	line, _, _ := strings.Cut(string(stat), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("stat of the machine: %q", line)
	}
	return sumTicks([]string{f[1], f[2], f[3], f[6], f[7], f[8]})
}

func sumTicks(fields []string) (float64, error) {
	sum := 0
	for _, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return float64(sum) / ticks, nil
}

// resident is the memory of a process in bytes, from proc_pid_statm(5).
func resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("statm: %q", b)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

func residentAll(pids []int) (sum int64, err error) {
	for _, pid := range families(pids) {
		n, err := resident(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// families adds the processes that those have started, as nginx does its workers: each of a process's
// threads has its own children.
func families(pids []int) []int {
	all := slices.Clone(pids)
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i])) // the pattern is a good one
		for _, list := range lists {
			b, _ := os.ReadFile(list) // of a thread that has ended there is none
			for field := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}
