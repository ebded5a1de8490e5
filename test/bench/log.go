package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// log has every client read one run to its end, and adds up what that wrote to the disk.
func (j job) log(ctx context.Context) (o outcome, err error) {
	cs := j.clients(new(atomic.Bool))
	for _, c := range cs {
		c.calls = 1
	}
	before, err := writtenAll(j.Targets)
	if err != nil {
		return o, err
	}
	wal := watchWAL(filepath.Join(j.Data, "spool", "spool.db-shm"))
	began := time.Now()
	f := repeated(ctx, cs)
	f.running.Wait() // each ends by itself
	o.Seconds = time.Since(began).Seconds()
	f.land()
	if err := pause(ctx, settle); err != nil { // what is written after the ends
		return o, err
	}
	o.WAL = wal.stop()
	after, err := writtenAll(j.Targets)
	if err != nil {
		return o, err
	}
	o.sum(cs)
	o.Events = o.Checks.Events
	o.Bytes = o.Events*eventSize + int64(len(cs)*len(doneEvent))
	o.Written = after - before
	o.Run = cs[0].id
	return o, nil
}

// folderSize is the bytes of all files in it.
func folderSize(dir string) (sum int64, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
