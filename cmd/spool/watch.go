package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// watchEvery is between two looks at the file.
const watchEvery = time.Second

// watch reloads the settings on SIGHUP, and when the file says something else than before, until ctx
// ends.
func (s *service) watch(ctx context.Context) {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	watchFile(ctx, s.cmd.Config, hangUp, s.reload)
}

// watchFile calls changed when the file holds something else, and whenever somebody asks. It looks at
// what the file holds and not at the file: editors put another one in its place, and Kubernetes a link
// to another folder. A file that is being written is let be until two looks find the same; one that is
// missing says nothing.
func watchFile(ctx context.Context, path string, asked <-chan os.Signal, changed func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := read(path)
	last := known
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			known = read(path)
			last = known
			changed()
		case <-tick.C:
			now := read(path)
			if now != nil && bytes.Equal(now, last) && !bytes.Equal(now, known) {
				known = now
				changed()
			}
			last = now
		}
	}
}

// read is what the file holds; nil where there is none that can be read.
func read(path string) []byte {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return append([]byte{}, text...)
}
