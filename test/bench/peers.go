package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// peerTargets are Spool and what a user would pick instead.
func peerTargets() []target {
	return []target{targetSpool, targetResumable, targetResumableAlways, targetDurableEach, targetDurableBatched}
}

// peerScenarios is the work that all of them do.
func peerScenarios() []scenario {
	return []scenario{
		{name: "flat100", kind: flat, streams: 100, events: flatRun, of: targetSpool},
		{name: "paced100", kind: paced, streams: 100, events: pacedRun, rate: paceRate, of: targetSpool},
	}
}

// peers measures them in a network of their own.
func peers(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if !isEnclosed() { // there nothing can be fetched
		if err := installPeers(ctx); err != nil {
			return err
		}
	}
	return enclosed(ctx, o, append([]string{"peers"}, args...), benchPeers)
}

// benchPeers measures them in turn, then kills each of their processes in mid-stream.
func benchPeers(ctx context.Context, o options) error {
	o.scenarios = peerScenarios()
	r, drop, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer drop()
	r.opening = peerLimit
	r.targets = func(s scenario) []target {
		if s.kind == paced {
			return append([]target{targetDirect}, peerTargets()...)
		}
		return peerTargets()
	}
	if err := r.measureAll(ctx); err != nil {
		return err
	}
	rep := r.peersReport()
	for _, t := range peerTargets() {
		losses, err := r.lose(ctx, t)
		if err != nil {
			return fmt.Errorf("kill %s: %w", t, err)
		}
		rep.Losses = append(rep.Losses, losses...)
	}
	if err := rep.print(os.Stdout); err != nil || o.json == "" {
		return err
	}
	return writeJSON(o.json, rep)
}

// lose kills each process of a program, one after the other, each time with a new set of them.
func (r *runner) lose(ctx context.Context, t target) (all []loss, err error) {
	for i, more := 0, true; more; i++ {
		var l loss
		if l, more, err = r.loseOne(ctx, t, i); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "killed %s of %s\n", l.Killed, t)
		all = append(all, l)
	}
	return all, nil
}

// loseOne kills the i-th process, and says whether there is another one.
func (r *runner) loseOne(ctx context.Context, t target, i int) (l loss, more bool, err error) {
	data, drop, err := r.folder(ctx, t)
	if err != nil {
		return l, false, err
	}
	defer drop()
	upstream, err := start(ctx, r.self, "provider")
	if err != nil {
		return l, false, err
	}
	defer upstream.stop() // where the program did not start
	program, err := r.launch(ctx, t, "http://"+upstream.addr+"/load", data)
	if err != nil {
		return l, false, err
	}
	defer program.stop()
	defer upstream.stop()
	l = loss{Target: t, Killed: program.parts[i].name, Streams: lossStreams}
	s := scenario{events: lossRun, rate: paceRate}
	err = l.stage(ctx, program.base+program.path+"?"+s.query(), program.base, lossAfter, func() error {
		program.parts[i].kill()
		if err := pause(ctx, time.Second); err != nil { // its callers notice
			return err
		}
		return program.restart(i)
	})
	if err != nil {
		return l, false, errors.Join(err, program.ended())
	}
	return l, i+1 < len(program.parts), nil
}
