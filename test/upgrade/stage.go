package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

const (
	pace    = 50 * time.Millisecond // between two events of a live stream
	callers = 4                     // that make new calls all the time
	victims = 5                     // streams of the process that is killed
)

// stream is a live answer and its reader.
type stream struct {
	route  string
	events [][]byte
	read   func(ctx context.Context, route string, begun func(id string)) ([][]byte, error)

	id  string
	got [][]byte
	err error
}

// stage is what it is played on.
type stage struct {
	o    options
	seen report
	tally
	provider *fakellm.Server
	service  *service
	readers  sync.WaitGroup
	last     chan struct{} // closed when the streams may come to their ends
}

// run plays it all.
func run(ctx context.Context, o options) (report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	provider, err := fakellm.New("127.0.0.1:0", fakellm.Config{Text: "A short answer, now and then.", Every: time.Millisecond})
	if err != nil {
		return report{}, err
	}
	defer provider.Close()
	s := &stage{o: o, provider: provider, last: make(chan struct{})}
	if s.service, err = start(ctx, o, provider.URL); err != nil {
		return report{}, err
	}
	defer s.service.abandon()
	err = s.play(ctx)
	if first := s.first.Load(); first != nil {
		err = errors.Join(errors.New(*first), err)
	}
	return s.seen, err
}

// play has the streams go through the upgrades while others call. The last process but one gets streams of its
// own, and is killed while it drains.
func (s *stage) play(ctx context.Context) error {
	polling, stopPolling := context.WithCancel(ctx)
	defer stopPolling()
	var polls sync.WaitGroup
	calls := make([]int, callers)
	for n := range callers {
		polls.Go(func() {
			c := newClient(&s.tally, s.service.url)
			defer c.close()
			calls[n] = c.poll(polling, fmt.Sprint("poll-", n))
		})
	}
	live, err := s.begin(ctx, "live", s.o.streams)
	if err != nil {
		return err
	}
	var doomed []*stream
	killed := 0
	for n := range s.o.upgrades {
		pause(ctx, s.o.pause)
		if n == s.o.upgrades-1 {
			if doomed, err = s.begin(ctx, "doomed", victims); err != nil {
				return err
			}
			if err := s.service.refuse(ctx); err != nil {
				return fmt.Errorf("upgrade to what does not start: %w", err)
			}
			s.seen.refused++
		}
		if killed, err = s.service.upgrade(ctx); err != nil {
			return fmt.Errorf("upgrade %d: %w", n+1, err)
		}
		s.seen.upgrades++
	}
	pause(ctx, s.o.pause)
	if err := s.across(ctx, live); err != nil {
		return err
	}
	if err := s.service.kill(killed); err != nil {
		return err
	}
	if err := s.mourn(ctx, doomed); err != nil {
		return err
	}
	stopPolling()
	polls.Wait()
	close(s.last)
	s.readers.Wait()
	for _, n := range calls {
		s.seen.wantedBought += n
	}
	return errors.Join(s.judge(ctx, live), s.service.stop(ctx))
}

// begin starts n live streams, each with a reader of one of three kinds, and returns once all have begun.
func (s *stage) begin(ctx context.Context, name string, n int) ([]*stream, error) {
	var all []*stream
	begun := make(chan *stream, 2*n)
	for i := range n {
		st := &stream{route: fmt.Sprintf("%s-%d", name, i)}
		var texts []string
		for word := range 12 * (s.o.upgrades + 1) {
			texts = append(texts, fmt.Sprintf("%s word %d ", st.route, word))
		}
		st.events = fakellm.Chat(texts...)
		most := len(st.events) - 4
		ops := append(fakellm.Play(st.events[:most], pace), fakellm.Gate(s.last))
		s.provider.Script(st.route, fakellm.Stream("text/event-stream", append(ops, fakellm.Play(st.events[most:], 0)...)...))
		c := newClient(&s.tally, s.service.url)
		st.read = []func(context.Context, string, func(string)) ([][]byte, error){c.stay, c.resume, c.page}[i%3]
		s.readers.Go(func() {
			defer c.close()
			st.got, st.err = st.read(ctx, st.route, func(id string) { st.id = id; begun <- st })
			begun <- st // also where it has not
		})
		all = append(all, st)
	}
	s.seen.wantedBought += n
	for range n {
		if st := <-begun; st.id == "" {
			return nil, fmt.Errorf("%s has not begun: %w", st.route, st.err)
		}
	}
	return all, nil
}

// across asks the new process about runs that an old one drains: the key of one finds it, one is cancelled.
func (s *stage) across(ctx context.Context, live []*stream) error {
	c := newClient(&s.tally, s.service.url)
	defer c.close()
	resp, id, err := c.call(ctx, live[0].route)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil || id != live[0].id {
		return fmt.Errorf("the key of a run that another process drains finds run %s, not %s: %w", id, live[0].id, err)
	}
	extra, err := s.begin(ctx, "cancelled", 1)
	if err != nil {
		return err
	}
	if _, err := s.service.upgrade(ctx); err != nil {
		return fmt.Errorf("one more upgrade: %w", err)
	}
	s.seen.upgrades++
	resp, err = c.ask(ctx, http.MethodPost, "/runs/"+extra[0].id+"/cancel", "")
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.provider.Await(within, func(all []fakellm.Request) bool {
		for _, r := range all {
			if r.Route == extra[0].route && !r.Closed.IsZero() {
				return true
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("the provider was not let go: %w", err)
	}
	return nil
}

// mourn waits until the streams of a process that was killed have ended for it.
func (s *stage) mourn(ctx context.Context, doomed []*stream) error {
	s.seen.killed = len(doomed)
	hung := time.Now().Add(patience)
	c := newClient(&s.tally, s.service.url)
	defer c.close()
	for _, st := range doomed {
		for {
			run, err := c.status(ctx, st.id)
			if err != nil {
				return err
			}
			if run.State == "interrupted" && run.Reason == "owner_lost" {
				s.seen.sealed++
				break
			}
			if time.Now().After(hung) {
				return fmt.Errorf("%s is %s", st.route, run.State)
			}
			pause(ctx, pace)
		}
	}
	return nil
}

// judge counts what the streams and the callers have seen.
func (s *stage) judge(ctx context.Context, live []*stream) error {
	s.seen.streams = len(live)
	c := newClient(&s.tally, s.service.url)
	defer c.close()
	var all []error
	for _, st := range live {
		run, err := c.status(ctx, st.id)
		if err != nil {
			return err
		}
		if run.State != "completed" || st.err != nil {
			s.seen.interrupted++
			all = append(all, fmt.Errorf("%s is %s %s, its reader has %w", st.route, run.State, run.Reason, st.err))
		}
		lost, duplicated := compare(st.got, st.events)
		if lost+duplicated > 0 && st.err == nil {
			all = append(all, fmt.Errorf("%s: %d events lost, %d besides", st.route, lost, duplicated))
		}
		s.seen.lost += lost
		s.seen.duplicated += duplicated
	}
	s.seen.requests, s.seen.failed, s.seen.moved = int(s.requests.Load()), int(s.failed.Load()), int(s.moved.Load())
	s.seen.longest = time.Duration(s.longest.Load())
	s.seen.bought = s.provider.Count("")
	return errors.Join(all...)
}

// compare counts what of want is not there, and what is there besides, in the order of want.
func compare(got, want [][]byte) (lost, more int) {
	n := 0
	for _, e := range got {
		if n < len(want) && bytes.Equal(e, want[n]) {
			n++
		} else {
			more++
		}
	}
	return len(want) - n, more
}
