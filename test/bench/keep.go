package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

const (
	keptEvents = 100 // of each kept run
	keepers    = 256 // runs that are stored at once
	keepLimit  = 2 * time.Hour
)

// keep has a process of its own make a folder that holds many runs, which are all within their TTL.
func (r *runner) keep(ctx context.Context) (string, error) {
	dir := filepath.Join(r.dir, "kept")
	fmt.Fprintf(os.Stderr, "storing %d runs …\n", r.keptRuns)
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, keepLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.self, "keep", filepath.Join(dir, "spool"), strconv.Itoa(r.keptRuns))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	fmt.Fprintf(os.Stderr, "stored within %.0f s\n", time.Since(began).Seconds())
	return dir, nil
}

// keep stores runs through the engine, as the service would.
func keep(ctx context.Context, args []string) (err error) {
	if len(args) != 2 {
		return fmt.Errorf("keep: want a folder and a number, have %q", args)
	}
	runs, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	store, err := sqlite.Open(ctx, sqlite.Config{Dir: args[0], Sync: "normal", Log: zap.NewNop()})
	if err != nil {
		return err
	}
	numbers := make(chan int)
	failed := make(chan error, keepers)
	var working sync.WaitGroup
	for range keepers {
		working.Go(func() {
			for n := range numbers {
				if err := keepOne(ctx, store, n); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for n := 0; n < runs && err == nil; n++ {
		select {
		case numbers <- n:
		case err = <-failed:
		}
	}
	close(numbers)
	working.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return errors.Join(err, store.Close())
}

// keepOne stores one run as a call of anonymous leaves it.
func keepOne(ctx context.Context, store *sqlite.Store, n int) error {
	log, _, err := store.Create(ctx, buffer.Run{
		ID: ulid.Make(), State: buffer.Idle, Caller: "anonymous", Key: fmt.Sprint("kept-", n), BodyHash: fmt.Sprint("kept-", n),
		Method: http.MethodPost, Path: callPath, Provider: "openai", Route: "openai", Dialect: "openai_chat", Model: "load",
		Stream: true, TTL: 24 * time.Hour,
	})
	if err != nil {
		return err
	}
	chunks := make([][]byte, keptEvents)
	for i := range chunks {
		chunks[i] = keptEvent(i)
	}
	return log.Append(ctx, chunks, buffer.Completed, buffer.Closing{})
}

// keptEvent has the size of all events here.
func keptEvent(i int) []byte {
	e, _ := json.Marshal(map[string]string{"i": fmt.Sprintf("%0*d", eventSize-len(`data: {"i":""}`)-len("\n\n"), i)}) // of a map of strings it cannot fail
	return fmt.Appendf(nil, "data: %s\n\n", e)
}
