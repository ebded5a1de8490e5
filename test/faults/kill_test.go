package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// childVariable makes this program the child that is killed: its data folder, the step, and the point after it.
const childVariable = "SPOOL_FAULTS_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childVariable); args != "" {
		if err := child(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is that of a run, with what is sent to the provider between the ledger and the first append.
var order = []sqlite.Point{sqlite.AtClaim, sqlite.AtLedger, sqlite.AtAppend, sqlite.AtFinish, sqlite.AtRelease}

var childRun = ulid.MustParse("01ARZ3NDEKTSV4RRFFQ69G5FAV")

// child takes one run through its order, says which steps were answered, and kills itself at one.
func child(args string) error {
	var dir string
	var at, after sqlite.Point
	if _, err := fmt.Sscan(args, &dir, &at, &after); err != nil {
		return err
	}
	armed := false
	s, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir, Fault: func(p sqlite.Point) error {
		armed = armed || p == at
		if armed && p == after {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing comes after it
			select {}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	log, _, err := s.Create(ctx, buffer.Run{ID: childRun, Caller: "agent", Key: "k", State: buffer.Idle})
	steps := []func() error{
		func() error { return err },
		func() error { return log.Attempt(ctx, buffer.Attempt{N: 1}) },
		func() error {
			return log.Append(ctx, [][]byte{chunk(childRun, 0, 10)}, buffer.Streaming, buffer.Closing{})
		},
		func() error {
			return log.Append(ctx, [][]byte{chunk(childRun, 1, 10)}, buffer.Completed, buffer.Closing{})
		},
		func() error { _, err := s.Release(ctx, childRun); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return err
		}
		fmt.Println(order[i])
	}
	return errors.New("nobody killed it")
}

func killed(t *testing.T, c *count) {
	for i, at := range order {
		for _, after := range []sqlite.Point{at, sqlite.AtCommit, sqlite.AtCommitted} {
			t.Run(fmt.Sprintf("%s/%s", at, after), func(t *testing.T) {
				dir := t.TempDir()
				answered := runChild(t, fmt.Sprint(dir, " ", at, " ", after))
				if answered != i {
					t.Fatalf("%d steps were answered, want %d", answered, i)
				}
				c.times++
				reached := i // the last step that is in the file, and one more where COMMIT has returned
				if after == sqlite.AtCommitted {
					reached++
				}
				wantReached(t, c, dir, reached)
			})
		}
	}
}

// runChild returns how many steps were answered before the child was killed.
func runChild(t *testing.T, args string) (answered int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+args)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		answered++
	}
	_ = cmd.Wait() // the signal is looked at
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %s", cmd.ProcessState)
	}
	return answered
}

// wantReached starts again on what was left, and checks how far the run had come.
func wantReached(t *testing.T, c *count, dir string, reached int) {
	t.Helper()
	reopen(t, c, dir, nil)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	r, err := s.Get(t.Context(), childRun)
	if reached == 0 {
		if !errors.Is(err, buffer.ErrNotFound) {
			c.corrupted++
			t.Errorf("a claim that was not committed: %v", err)
		}
		return
	}
	must(t, err)
	want := []struct {
		state    buffer.State
		head     int64
		attempts int
	}{1: {buffer.Failed, 0, 0}, 2: {buffer.Failed, 0, 1}, 3: {buffer.Interrupted, 1, 1}, 4: {buffer.Completed, 2, 1}, 5: {buffer.Released, 2, 1}}[reached]
	if r.State != want.state || r.Head != want.head || len(r.Attempts) != want.attempts {
		c.lost += int(want.head - min(r.Head, want.head))
		t.Errorf("the run is %s at %d with %d ledger rows, want %+v", r.State, r.Head, len(r.Attempts), want)
	}
}
