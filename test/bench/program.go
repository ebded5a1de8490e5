package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
)

// target is a program under test.
type target string

const (
	targetDirect target = "direct" // nothing: the provider itself
	targetProxy  target = "proxy"  // net/http/httputil.ReverseProxy
	targetNginx  target = "nginx"
	targetSpool  target = "spool"
	targetKept   target = "kept" // spool, on a folder that holds many runs already
)

// callPath is a generation call's.
const callPath = "/v1/chat/completions"

// grace is what Spool's live runs are given when a measurement is over.
const grace = "1s"

// service is a program under test that runs.
type service struct {
	base  string // URL
	path  string // of a generation call, without its query
	admin string // address of Spool's admin listener, where it has one
	parts []part // its processes
}

// part is one process of a program, which can be started again as it was.
type part struct {
	*child
	name  string
	start func() (*child, error)
}

// add starts one more process. Where it does not start, those that have are ended.
func (s *service) add(name string, start func() (*child, error)) error {
	c, err := start()
	if err != nil {
		s.stop()
		return err
	}
	s.parts = append(s.parts, part{c, name, start})
	return nil
}

// restart starts a part again that has ended.
func (s *service) restart(i int) (err error) {
	s.parts[i].child, err = s.parts[i].start()
	return err
}

// stop ends all processes, the last one first.
func (s *service) stop() {
	for i := len(s.parts) - 1; i >= 0; i-- {
		s.parts[i].stop()
	}
}

// inside is where Spool tells of itself: on its admin listener, where it has one.
func (s *service) inside() string {
	if s.admin != "" {
		return "http://" + s.admin
	}
	return s.base
}

func (s *service) pids() (ids []int) {
	for _, p := range s.parts {
		ids = append(ids, p.pid())
	}
	return ids
}

// ended is an error where a process has ended by itself.
func (s *service) ended() error {
	for _, p := range s.parts {
		select {
		case <-p.child.ended:
			return fmt.Errorf("%s: %s: %s", p, p.cmd.ProcessState, p.words.last)
		default:
		}
	}
	return nil
}

// launch starts a program before a provider. What it stores goes into data.
func (r *runner) launch(ctx context.Context, t target, upstream, data string) (*service, error) {
	if t == targetDirect {
		return &service{base: upstream, path: callPath}, nil
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &service{base: "http://" + address, path: callPath}
	switch t {
	case targetProxy:
		return s, s.add("proxy", func() (*child, error) { return start(ctx, r.self, "proxy", address, upstream) })
	case targetNginx:
		conf, err := writeNginxConf(data, address, upstream)
		if err != nil {
			return nil, err
		}
		return s, s.add("nginx", func() (*child, error) { return startOn(ctx, address, "nginx", "-c", conf, "-p", data) })
	case targetSpool, targetKept:
		return s, r.addSpool(ctx, s, address, upstream, data)
	}
	return s, s.addPeer(ctx, t, address, upstream, data)
}

func (r *runner) addSpool(ctx context.Context, s *service, address, upstream, data string) (err error) {
	s.path = "/openai" + callPath
	args := []string{"serve", "--listen", address, "--data", filepath.Join(data, "spool"), "--sync", r.sync, "--grace", grace,
		"--provider", "openai=" + upstream}
	if r.profile != "" {
		if s.admin, err = freeAddress(); err != nil {
			return err
		}
		more, err := adminArgs(data, s.admin)
		if err != nil {
			return err
		}
		args = append(args, more...)
	}
	return s.add("spool", func() (*child, error) { return start(ctx, r.spool, args...) })
}

// freeAddress is one on which nobody listens now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
