package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

const (
	flushSize  = 4 << 10
	flushes    = 200
	flushLimit = 2 * time.Second // for all of them, on a slow disk
)

// timeFlushes appends to a new file in dir and times one flush after the other: what a commit cannot
// be faster than.
func timeFlushes(dir string, h *histogram) error {
	f, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return err
	}
	page := make([]byte, flushSize)
	began := time.Now()
	for i := 0; i < flushes && time.Since(began) < flushLimit && err == nil; i++ {
		if _, err = f.Write(page); err != nil {
			break
		}
		before := time.Now()
		err = f.Sync()
		h.add(time.Since(before))
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
