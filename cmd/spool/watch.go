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

// awaited is what may change the settings: SIGHUP, and what their file held before they were read. Both are
// taken before that, so that no change is missed, and no signal ends a process that starts.
type awaited struct {
	hangUp <-chan os.Signal
	known  []byte
}

func awaitChanges(path string) awaited {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	return awaited{hangUp, read(path)}
}

// watch calls changed when the file at path holds something else, and whenever somebody asks, until ctx ends. It
// looks at what the file holds and not at the file: editors put another one in its place, and Kubernetes a link
// to another folder. A file that is being written is let be until two looks find the same; one that is
// missing says nothing.
func (a awaited) watch(ctx context.Context, path string, changed func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := a.known
	last := known
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.hangUp:
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
