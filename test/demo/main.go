// Command demo shows what Spool is for, without a key and without a network: an agent is killed in
// the middle of an answer and gets the rest; then Spool itself is killed, and what a reader saw is
// still there.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

const (
	pace       = 60 * time.Millisecond // between two words
	cutAgent   = 18                    // words after which the agent is killed
	cutSpool   = 24                    // words after which Spool is killed
	startLimit = 20 * time.Second
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := agent(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		return
	}
	if err := demo(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// stage is what the two acts are played on.
type stage struct {
	screen
	dir      string
	binary   string
	address  string
	provider *fakellm.Server
	spool    *exec.Cmd
}

func demo(ctx context.Context) error {
	s := &stage{screen: newScreen(os.Stdout)}
	var err error
	if s.dir, err = os.MkdirTemp("", "spool-demo"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	s.note("building Spool …")
	s.binary = filepath.Join(s.dir, "spool")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/spool").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	if s.provider, err = fakellm.New("127.0.0.1:0", fakellm.Config{Every: pace}); err != nil {
		return err
	}
	defer s.provider.Close()
	if s.address, err = freePort(); err != nil {
		return err
	}
	if err := s.startSpool(ctx); err != nil {
		return err
	}
	defer func() { s.stop(syscall.SIGTERM) }()
	s.note("a scripted provider answers at %s, Spool stands before it at http://%s", s.provider.URL, s.address)
	if err := s.killTheAgent(ctx); err != nil {
		return err
	}
	return s.killSpool(ctx)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startSpool starts the real binary and waits until it is ready.
func (s *stage) startSpool(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "spool.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	s.spool = exec.CommandContext(ctx, s.binary, "serve", "--listen", s.address, "--data", filepath.Join(s.dir, "data"), "--provider", "openai="+s.provider.URL)
	s.spool.Stderr = log
	if err := s.spool.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get("http://" + s.address + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("the buffer did not become ready")
		}
	}
}

func (s *stage) stop(sig syscall.Signal) {
	_ = s.spool.Process.Signal(sig) // it may have gone already
	_ = s.spool.Wait()              // its end is the signal's, which is no news
}

// killTheAgent is the first act.
func (s *stage) killTheAgent(ctx context.Context) error {
	s.title("1. The agent dies, the answer does not")
	s.note("the agent asks with Idempotency-Key: demo-1, and is killed (-9) after %d words", cutAgent)
	if err := s.play(ctx, "demo-1", cutAgent, func(agent *exec.Cmd) { _ = agent.Process.Kill() }); err != nil {
		return err
	}
	s.cut("kill -9 agent")
	s.note("a new agent comes with the same key and the position it had stored")
	if err := s.play(ctx, "demo-1", 0, nil); err != nil {
		return err
	}
	s.line()
	seen, err := os.ReadFile(s.stored("demo-1"))
	if err != nil {
		return err
	}
	sent := bytes.Join(fakellm.Chat(strings.SplitAfter(fakellm.DefaultText, " ")...), nil)
	s.fact("provider calls", s.provider.Count("v1"), 1)
	s.fact("bytes equal", yes(bytes.Equal(seen, sent)), "yes")
	return s.verdict()
}

// killSpool is the second act.
func (s *stage) killSpool(ctx context.Context) error {
	s.title("2. Spool itself dies")
	s.note("another answer; after %d words Spool is killed (-9)", cutSpool)
	err := s.play(ctx, "demo-2", cutSpool, func(*exec.Cmd) { s.stop(syscall.SIGKILL) })
	s.cut("kill -9 spool")
	if err == nil {
		return errors.New("the agent took a cut answer for a whole one")
	}
	if err := s.startSpool(ctx); err != nil {
		return err
	}
	s.note("Spool is up again; what the agent had seen is read back from the log:")
	seen, err := os.ReadFile(s.stored("demo-2"))
	if err != nil {
		return err
	}
	stored, state, err := s.readBack(ctx, "demo-2")
	if err != nil {
		return err
	}
	s.words(stored)
	s.line()
	s.fact("provider calls", s.provider.Count("v1")-1, 1)
	s.fact("what the agent saw is stored, bytes equal", yes(bytes.HasPrefix(stored, seen)), "yes")
	s.fact("the run says that it is not whole", state, "interrupted")
	out, err := exec.CommandContext(ctx, s.binary, "check", filepath.Join(s.dir, "data")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("check: %w\n%s", err, out)
	}
	s.fact("spool check", string(bytes.TrimSpace(out)), "ok: every stored invariant holds")
	return s.verdict()
}

// stored is the file in which the agent with that key keeps what it has read.
func (s *stage) stored(key string) string { return filepath.Join(s.dir, key+".bytes") }

// play runs an agent and shows its words. After cut words it calls do, once.
func (s *stage) play(ctx context.Context, key string, cut int, do func(agent *exec.Cmd)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent := exec.CommandContext(ctx, self, "agent", "http://"+s.address, key, s.stored(key))
	agent.Stderr = io.Discard
	out, err := agent.StdoutPipe()
	if err != nil {
		return err
	}
	if err := agent.Start(); err != nil {
		return err
	}
	killed := false
	words := newWordReader(out)
	for n := 1; words.next(); n++ {
		s.word(words.text)
		if do != nil && n == cut {
			do(agent)
			killed = true
		}
	}
	if err := agent.Wait(); err != nil && !(killed && agent.ProcessState.ExitCode() == -1) {
		return err
	}
	return nil
}

// readBack is what is stored of the key's run, and the run's state.
func (s *stage) readBack(ctx context.Context, key string) (stored []byte, state string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/resume?from=0&follow=0&key="+key, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	stored, _ = io.ReadAll(resp.Body) // an interrupted run never ends cleanly
	return stored, resp.Header.Get("X-Buffer-Status"), nil
}
