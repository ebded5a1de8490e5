package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

const (
	sweepEach = 10 * time.Second // the service's own
	settles   = time.Minute      // for what closes connections and gives memory back
)

// slack is how far a figure may be from where it began, once all is quiet.
type slack struct {
	resident, heap      float64 // bytes
	goroutines, handles float64
	run                 float64 // bytes of disk for each run, whose tombstone stays for 24 hours
}

var (
	// warmSlack is for a service whose caches were full at the first measurement.
	warmSlack = slack{resident: 48 << 20, heap: 16 << 20, goroutines: 8, handles: 8, run: 4 << 10}
	// coldSlack has room for what a service takes once: the writer's page cache, connections to the file.
	coldSlack = slack{resident: 128 << 20, heap: 16 << 20, goroutines: 8, handles: 32, run: 4 << 10}
)

func (s slack) of(g gauge, runs int) float64 {
	tolerated := sample{resident: s.resident, heap: s.heap, goroutines: s.goroutines, handles: s.handles, inUse: s.run*float64(runs) + 1<<20}
	return *g.of(&tolerated)
}

// site is the service with its load, its provider and its meter.
type site struct {
	*load
	o       options
	out     io.Writer
	service binary.Service
	process *binary.Process
	meter   *meter
	address string // of the provider
	bought  int    // requests that providers of before got

	started, begin, end sample
	beginRuns           int // before the first measurement
	course              []sample
	busy                float64 // cores, of this process and the service, under load
	compacted           int64   // bytes of the log's file in the end
}

// soak does it all, and is an error where a promise is broken.
func soak(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "seed %d, %s under load, %.2f cores at most\n", o.seed, o.duration, o.cpu)
	s := &site{o: o, out: out, load: &load{o: o, out: out, counts: counts{endings: map[string]int{}, habits: map[string]int{}}}}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.process.Kill() // where it has not ended by itself
	defer func() { s.fake().Close() }()
	if err := s.stages(ctx); err != nil {
		return err
	}
	s.report()
	if s.faults > 0 {
		return fmt.Errorf("%d promises are broken", s.faults)
	}
	return nil
}

// start builds the service and starts it before a provider.
func (s *site) start(ctx context.Context) error {
	path, err := binary.Build(ctx, s.o.dir, binary.Spool)
	if err != nil {
		return err
	}
	if err := s.openProvider("127.0.0.1:0"); err != nil {
		return err
	}
	s.address = s.fake().Addr()
	config := filepath.Join(s.o.dir, "config.yaml")
	if err := os.WriteFile(config, s.config(), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.o.dir, "spool.log"))
	if err != nil {
		return err
	}
	s.service = binary.Service{Path: path, Dir: filepath.Join(s.o.dir, "data"), Args: []string{"--config", config}, Log: log}
	if s.process, err = s.service.Serve(); err != nil {
		return err
	}
	s.peer = newPeer(s.process.URL)
	if s.meter, err = newMeter(s.process.PID(), s.process.Admin, s.service.Dir); err != nil {
		return err
	}
	s.started, err = s.meter.sample(ctx)
	return err
}

// config is the default but for where the provider is, how many calls it takes at once, and how soon ended
// runs are released.
func (s *site) config() []byte {
	text := fmt.Appendf(nil, "ttl: %s\nadmin: {listen: \"127.0.0.1:0\"}\nproviders:\n", s.o.ttl)
	for _, name := range []string{"openai", "anthropic", "gemini", "ollama", "bedrock"} {
		text = fmt.Appendf(text, "  %s: {base_url: \"http://%s\", concurrency: %d}\n", name, s.address, slots)
	}
	return text
}

func (s *site) openProvider(address string) error {
	fake, err := fakellm.New(address, fakellm.Config{})
	if err == nil {
		s.provider.Store(fake)
	}
	return err
}

// stages takes the service through warming up, load and quiet, and stops it.
func (s *site) stages(ctx context.Context) error {
	if err := s.thrifty.begin(s.o.cpu, os.Getpid(), s.process.PID()); err != nil {
		return err
	}
	var err error
	s.begin = s.started
	if s.o.warmUp > 0 {
		if err := s.work(ctx, "warm", s.o.warmUp, s.o.seed); err != nil {
			return err
		}
		if s.begin, err = s.calm(ctx, never); err != nil {
			return err
		}
	}
	s.beginRuns, s.course = s.counts.runs, nil
	if err := s.work(ctx, "load", s.o.duration, s.o.seed+1); err != nil {
		return err
	}
	if s.busy, err = s.cores(); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if s.end, err = s.calm(ctx, s.back); err != nil {
		return err
	}
	s.compare()
	if err := s.meter.log.Close(); err != nil {
		return err
	}
	return s.stop(ctx)
}

// work has the workers work, and samples meanwhile.
func (s *site) work(ctx context.Context, phase string, d time.Duration, seed uint64) error {
	working, enough := context.WithTimeout(ctx, d)
	defer enough()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.drive(working, ctx, phase, seed)
	}()
	tick := time.NewTicker(s.o.every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return ctx.Err()
		case <-s.process.Exited:
			return fmt.Errorf("the service has ended: %q", s.process.Strays)
		case <-tick.C:
			got, err := s.meter.sample(ctx)
			if err != nil {
				return err
			}
			s.course = append(s.course, got)
		}
	}
}
