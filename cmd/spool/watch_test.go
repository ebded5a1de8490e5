package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A file that is being written is let be, and so is one that is missing for a moment.
func TestWatch_WaitsUntilTheFileIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("listen: a\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		var calls atomic.Int64
		asked, known := make(chan os.Signal), read(path)
		go func() { defer close(ended); awaited{asked, known}.watch(ctx, path, func() { calls.Add(1) }) }()
		defer func() { stop(); <-ended }()
		expect := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if n := calls.Load(); n != want {
				t.Errorf("%s: called %d times, want %d", what, n, want)
			}
		}
		step := func() { time.Sleep(watchEvery); synctest.Wait() }
		step()
		expect("nothing has changed", 0)
		write("lis")
		step()
		write("listen: b\n")
		step()
		expect("each look finds another text", 0)
		step()
		expect("two looks find the same", 1)
		step()
		expect("it is known now", 1)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		step()
		step()
		expect("it is missing", 1)
		write("listen: b\n")
		step()
		step()
		expect("it is back as it was", 1)
		asked <- os.Interrupt
		expect("somebody asks", 2)
	})
}

// A file that changes between the reading of the settings and the first look is no exception.
func TestWatch_ChangeWhileTheProcessStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("listen: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		changed, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			awaited{nil, []byte("listen: a\n")}.watch(ctx, path, func() { close(changed) })
		}()
		<-changed
		stop()
		<-ended
	})
}
